"""The house's rooms, what each may import and where it does I/O; docs/ARCHITECTURE.md lists them.

A room is a package; beside them stand `main.py` of each service and a few files of the library.
Importing a room is allowed only if it is named here, also inside functions and for typing only.
"""

from dataclasses import dataclass
from pathlib import PurePath

BASE = "edge_ldp/*.py"  # entropy, errors, ratio, version: the library's own ground


@dataclass(frozen=True)
class Room:
    """What a room is for, the rooms and packages it imports, its files with I/O and with SQL.

    Each is a text of names with spaces between; "*": all files. `numpy.random` among the packages:
    seeded draws may be made there, which never protect anything.
    """

    what: str
    imports: str = ""
    packages: str = ""
    io: str = ""
    sql: str = ""


ROOMS = {
    # the library
    "edge_ldp/device": Room("the portable integer kernel, also for MicroPython"),
    BASE: Room(
        "randomness, ε as integers, errors, checks, arguments, extras, the version",
        "edge_ldp/device",
        "numpy",
        io="arguments.py entropy.py",
    ),
    "edge_ldp/mechanisms": Room(
        "laws on numbers: waves, hybrid, tuned; the names of `edge_ldp`",
        f"edge_ldp/device {BASE}",
        io="tuned.py",
    ),
    "edge_ldp/protocol": Room(
        "what travels and what is promised: plan, policy, messages, ledger, signatures",
        f"edge_ldp/device edge_ldp/mechanisms {BASE}",
    ),
    "edge_ldp/oracles": Room(
        "laws on categories: GRR, OLH, OUE, trees", f"edge_ldp/device edge_ldp/mechanisms {BASE}"
    ),
    "edge_ldp/vectorized": Room(
        "the same codes from arrays",
        f"edge_ldp/device edge_ldp/mechanisms edge_ldp/oracles {BASE}",
        "numpy",
        io="oracles.py perturb.py",
    ),
    "edge_ldp/period_sums": Room(
        "noise on a home's own sums: layouts, promises, estimates, forecasts",
        f"edge_ldp/device {BASE}",
        "numpy",
    ),
    "edge_ldp/certify": Room(
        "proofs of a mechanism, an oracle, a plan or a home's sums, from its integers",
        "edge_ldp/device edge_ldp/mechanisms edge_ldp/oracles edge_ldp/protocol"
        f" edge_ldp/period_sums {BASE}",
        io="certify_command.py",
    ),
    "edge_ldp/gateway": Room(
        "EMS without NumPy, for a gateway that estimates alone",
        f"edge_ldp/device edge_ldp/mechanisms {BASE}",
        io="estimate_command.py",
    ),
    "edge_ldp/estimate": Room(
        "densities from counts: EM, EMS, held-out, AHEAD, HH-ADMM, joint",
        f"edge_ldp/device edge_ldp/mechanisms edge_ldp/gateway {BASE}",
        "numpy scipy matplotlib pandas",
    ),
    "edge_ldp/sums": Room(
        "means and sums with intervals, and their forecast",
        "edge_ldp/device edge_ldp/mechanisms edge_ldp/protocol edge_ldp/vectorized"
        f" edge_ldp/period_sums {BASE}",
        "numpy matplotlib importlib",
        io="forecast_command.py",
    ),
    "edge_ldp/threshold": Room(
        "θ: the papers' rules and ours",
        f"edge_ldp/device edge_ldp/mechanisms edge_ldp/estimate edge_ldp/sums {BASE}",
        "numpy",
    ),
    "edge_ldp/poisoning": Room(
        "alarms and filters against lying devices",
        f"edge_ldp/mechanisms edge_ldp/vectorized edge_ldp/estimate {BASE}",
        "numpy scipy",
    ),
    "edge_ldp/continual": Room(
        "one stream under central DP",
        f"edge_ldp/device edge_ldp/protocol {BASE}",
        "numpy",
        io="noise.py",
    ),
    "edge_ldp/service": Room(
        "what both services share: MQTT, TLS, clock, systemd, signatures, tables of TOML",
        f"edge_ldp/device edge_ldp/protocol {BASE}",
        "paho cryptography",
        io="clock.py files.py mqtt.py mqtt_socket.py service_manager.py tasks.py tls.py trial.py",
    ),
    "edge_ldp/cli.py": Room("the command `edge-ldp`", BASE, "importlib", io="cli.py"),
    # the device's service
    "agent": Room("the agent's errors; times as a home's clocks show them", "edge_ldp/protocol"),
    "agent/meters": Room(
        "protocols: bytes in, readings out; Modbus tables as data",
        f"edge_ldp/service agent {BASE}",
        io="models.py",
    ),
    "agent/claims": Room(
        "slot values → claim; reports → numbered batches",
        f"edge_ldp/device edge_ldp/protocol agent/meters {BASE}",
    ),
    "agent/config": Room(
        "agent.toml: sections, faults with their lines, secrets",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service edge_ldp/continual edge_ldp/period_sums"
        f" agent agent/meters agent/claims {BASE}",
        io="load.py secrets.py",
    ),
    "agent/ports": Room(
        "serial and network ports, pages and topics: opened, probed, recorded",
        "edge_ldp/service agent agent/meters",
        "serial zeroconf",
        io="announced.py at_address.py letting_in.py meters.py network_port.py open_port.py"
        " page_port.py port.py probe.py recorder.py serial_port.py topic_port.py",
    ),
    "agent/state": Room(
        "the one owner of the disk: claim and commit, plans, batches",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service agent agent/config"
        f" agent/claims {BASE}",
        io="accepted_plans.py core.py device.py disk_trouble.py journal_file.py journal_schema.py"
        " local_mode.py moving.py place.py state_file.py",
        sql="journal.py journal_file.py journal_schema.py plan_journal.py",
    ),
    "agent/curator": Room(
        "values that run: curated ones and sums, released with noise instead of codes",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service edge_ldp/continual edge_ldp/period_sums"
        f" agent agent/config agent/claims agent/state {BASE}",
        io="journal.py mode.py running_file.py sums_journal.py sums_mode.py",
        sql="journal.py sums_journal.py",
    ),
    "agent/link": Room(
        "codes out, plans and receipts in",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service agent/config agent/claims agent/state"
        f" {BASE}",
        io="incoming.py plan_queue.py uplink.py",
    ),
    "agent/tap": Room(
        "raw readings for the household's own broker and readers",
        f"edge_ldp/protocol edge_ldp/service agent/config agent/meters agent/running {BASE}",
        io="link.py share.py",
    ),
    "agent/running": Room(
        "ports → claims → state, while the agent runs",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service agent agent/config agent/meters"
        " agent/claims agent/ports agent/state agent/link",
        io="door.py feed.py feeds.py health_file.py loading.py memory.py reload.py vitals.py",
    ),
    "agent/commands": Room(
        "check, status, ledger, explain, ports, read, probe …",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service edge_ldp/continual"
        " edge_ldp/period_sums agent agent/config agent/meters agent/claims agent/ports agent/state"
        f" agent/curator agent/link agent/running {BASE}",
        "serial",
        io="answers.py asked_plans.py commissioning.py found_meter.py going_on.py gone.py house.py"
        " live.py meter.py places.py plans.py setup.py talk.py",
    ),
    "agent/page": Room(
        "what left this house, for its people to look at and take along",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service edge_ldp/certify agent agent/config"
        f" agent/claims agent/state agent/running agent/commands {BASE}",
        io="gather.py of_sums.py record.py server.py",
    ),
    "agent/main.py": Room(
        "`edge-ldp agent`",
        "edge_ldp/device edge_ldp/service agent agent/config agent/state agent/curator agent/link"
        f" agent/tap agent/page agent/running agent/commands {BASE}",
        io="main.py",
    ),
    # the utility's service
    "aggregator": Room("the aggregator's errors", "edge_ldp/device"),
    "aggregator/config": Room(
        "aggregator.toml: sections, faults, secrets",
        "edge_ldp/device edge_ldp/mechanisms edge_ldp/protocol edge_ldp/sums edge_ldp/service"
        f" edge_ldp/period_sums aggregator {BASE}",
        io="load.py",
    ),
    "aggregator/counting": Room(
        "which reports count, exactly once; a pure function",
        "edge_ldp/device edge_ldp/mechanisms edge_ldp/protocol edge_ldp/vectorized"
        f" edge_ldp/estimate edge_ldp/continual edge_ldp/period_sums aggregator {BASE}",
        "numpy scipy",
    ),
    "aggregator/archive": Room(
        "spool and Parquet of what was counted",
        "edge_ldp/device edge_ldp/protocol aggregator aggregator/config aggregator/counting",
        "numpy pyarrow",
        io="directory.py files.py parquet.py releases.py spool.py",
    ),
    "aggregator/store": Room(
        "one contract, on SQLite and PostgreSQL; all SQL",
        "edge_ldp/device edge_ldp/protocol edge_ldp/mechanisms edge_ldp/service aggregator"
        f" aggregator/config aggregator/counting aggregator/archive {BASE}",
        "numpy msgspec psycopg",
        io="backup.py contract.py moving.py opening.py store_thread.py"
        " locks.py reader.py store.py curated_schema.py flush.py session.py",
        sql="*",
    ),
    "aggregator/courier": Room(
        "the link to the broker, a process of its own",
        "edge_ldp/service",
        "msgspec",
        io="courier.py process.py retained.py wire.py",
    ),
    "aggregator/intake": Room(
        "messages in, receipts out",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service aggregator/config"
        " aggregator/counting aggregator/archive aggregator/store aggregator/courier",
        io="intake.py receipt_post.py",
    ),
    "aggregator/plans": Room(
        "counts → θ → plan, signed and published",
        "edge_ldp/device edge_ldp/mechanisms edge_ldp/protocol edge_ldp/certify edge_ldp/estimate"
        " edge_ldp/sums edge_ldp/threshold edge_ldp/poisoning edge_ldp/service aggregator"
        " aggregator/config aggregator/counting aggregator/store aggregator/courier"
        f" {BASE}",
        "numpy numpy.random cryptography",
        io="clock_jumps.py keys.py publisher.py signing.py",
    ),
    "aggregator/answers": Room(
        "sums, curves, densities, completeness, what is promised; how they print",
        "edge_ldp/device edge_ldp/mechanisms edge_ldp/protocol edge_ldp/certify edge_ldp/estimate"
        " edge_ldp/sums edge_ldp/poisoning edge_ldp/continual edge_ldp/period_sums edge_ldp/service"
        " aggregator/config aggregator/counting aggregator/store aggregator/plans"
        f" {BASE}",
        "numpy numpy.random msgspec",
    ),
    "aggregator/replay": Room(
        "counts anew on DuckDB or Spark",
        "edge_ldp/protocol edge_ldp/estimate aggregator"
        f" aggregator/counting aggregator/archive aggregator/store {BASE}",
        "numpy numpy.random duckdb pyarrow pyspark py4j",
        io="counts.py duckdb_engine.py spark_engine.py",
        sql="statement.py",
    ),
    "aggregator/enrolment": Room(
        "how a fleet comes about: broker's files, certificates, logins, invitations, tokens",
        "edge_ldp/protocol aggregator/config",
        "cryptography msgspec segno",
        io="authority.py invitations.py logins.py tokens.py",
    ),
    "aggregator/running": Room(
        "workers, leader, chores, announced sums",
        "edge_ldp/protocol edge_ldp/service aggregator aggregator/config"
        " aggregator/archive aggregator/store aggregator/courier"
        f" aggregator/intake aggregator/plans {BASE}",
        io="announcer.py election.py process.py rights.py service.py trial.py",
    ),
    "aggregator/commands": Room(
        "the operator's verbs",
        "edge_ldp/device edge_ldp/protocol edge_ldp/service aggregator"
        " aggregator/config aggregator/counting aggregator/archive aggregator/store"
        " aggregator/enrolment aggregator/plans aggregator/answers aggregator/replay"
        f" aggregator/running {BASE}",
        "msgspec rich",
        io="asking.py backup.py common.py devices.py dossier.py figures.py invite.py"
        " plan.py renew.py replay.py setup.py",
    ),
    "aggregator/console": Room(
        "pages, API and metrics for those who look; it cannot write",
        "edge_ldp/device edge_ldp/certify edge_ldp/sums edge_ldp/service"
        " aggregator aggregator/config aggregator/store aggregator/enrolment"
        f" aggregator/answers aggregator/commands {BASE}",
        "msgspec starlette uvicorn jinja2 joserfc pyarrow",
        io="answering.py confinement.py desks.py guard.py half_open.py main.py provider.py pulse.py"
        " server.py signing_on.py tables.py",
    ),
    "aggregator/main.py": Room(
        "`edge-ldp aggregator`",
        f"aggregator/config aggregator/running aggregator/commands {BASE}",
        io="main.py",
    ),
    # what stands in for the world outside
    "firmware_stubs": Room(
        "the command `edge-ldp simulate`", f"edge_ldp/cli.py {BASE}", io="main.py"
    ),
    "firmware_stubs/data": Room("load series of real homes", "", "numpy", io="*"),
    "firmware_stubs/meters": Room(
        "simulated meters, with faults",
        f"edge_ldp/device edge_ldp/protocol edge_ldp/service firmware_stubs/data {BASE}",
        "numpy",
        io="*",
    ),
    "firmware_stubs/simulator": Room(
        "simulated homes, speaking the device's protocol",
        "edge_ldp/device edge_ldp/protocol edge_ldp/vectorized edge_ldp/service"
        " edge_ldp/period_sums aggregator/config aggregator/running agent/claims agent/config"
        f" agent/curator firmware_stubs/data {BASE}",
        "numpy",
        io="*",
    ),
    "firmware_stubs/demo": Room(
        "two scenarios, through the services' commands alone",
        "edge_ldp/mechanisms edge_ldp/protocol edge_ldp/vectorized"
        f" firmware_stubs/data firmware_stubs/meters {BASE}",
        "numpy scipy matplotlib rich",
        io="*",
    ),
    # the research wing: it may import all, nothing imports it
    "studies": Room(
        "the papers' experiments, rival estimators, tuned tables, load tests",
        "edge_ldp/device edge_ldp/mechanisms edge_ldp/protocol edge_ldp/oracles edge_ldp/vectorized"
        " edge_ldp/estimate edge_ldp/sums edge_ldp/threshold edge_ldp/continual edge_ldp/service"
        " edge_ldp/gateway edge_ldp/period_sums agent/claims aggregator aggregator/config"
        " aggregator/counting aggregator/store aggregator/courier aggregator/intake"
        " aggregator/plans aggregator/answers aggregator/running firmware_stubs/data"
        " firmware_stubs/simulator"
        f" {BASE}",
        io="*",
    ),
}


def room_of(place: PurePath) -> str:
    """Return the room of a file, given its path from the root."""
    package, *folders, file = place.parts
    if package == "studies":
        return package
    if folders:
        return f"{package}/{folders[0]}"
    if file in ("main.py", "cli.py") and package != "firmware_stubs":
        return f"{package}/{file}"
    if package == "edge_ldp":
        return "edge_ldp/mechanisms" if file == "__init__.py" else BASE
    return package


def drawn(package: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the rooms of a package and the arrows between them, as a drawing of it has them."""
    rooms = {name for name in ROOMS if name.partition("/")[0] == package}
    arrows = {(name, other) for name in rooms for other in ROOMS[name].imports.split()}
    return rooms, {(name, other) for name, other in arrows if other in rooms}


def does_io(place: PurePath) -> bool:
    """Say whether the table lets a file reach outside."""
    named = ROOMS[room_of(place)].io.split()
    return place.name in named or named == ["*"]


def says_sql(place: PurePath) -> bool:
    """Say whether the table lets a file hold SQL."""
    named = ROOMS[room_of(place)].sql.split()
    return place.name in named or named == ["*"]


def described() -> str:
    """Return the list that docs/ARCHITECTURE.md has: what each room is for."""
    return "\n".join(f"- `{name}`: {room.what}" for name, room in ROOMS.items())


if __name__ == "__main__":
    print(described())  # noqa: T201
