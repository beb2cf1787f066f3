"""paho's client as we use it: made for one connection, connecting beside the loop."""

from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from edge_ldp.service.broker import Broker
from edge_ldp.service.tasks import in_thread
from edge_ldp.service.tls import make_context

PACKET_HEAD = 5 + 2 + 2 + 1  # of a PUBLISH: fixed header, topic length, packet id, no properties
MAX_PACKET_BYTES = 1 << 19  # asked of MQTT 5 brokers: twice the largest message that is ever read
_PROTOCOLS = {"5": paho.MQTTv5, "3.1.1": paho.MQTTv311}


def make_client(broker: Broker, protocol: str) -> paho.Client:
    """Return a client that is not connected, and never connects by itself."""
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=broker.client_id,
        clean_session=None if protocol == "5" else broker.session_s == 0,
        protocol=_PROTOCOLS[protocol],
        manual_ack=broker.manual_ack,
        reconnect_on_failure=False,
    )
    client.connect_timeout = broker.connect_timeout_s
    client.max_inflight_messages_set(broker.window)
    if broker.username is not None:
        client.username_pw_set(broker.username, broker.password)
    if broker.tls:
        client.tls_set_context(make_context(broker))
    if broker.will:
        client.will_set(broker.will.topic, broker.will.payload, 1, broker.will.retain)
    return client


async def connect_client(client: paho.Client, broker: Broker, protocol: str) -> None:
    """Open the connection, which blocks, in a thread; the broker's answer comes later."""
    options: dict[str, Any] = {}
    if protocol == "5":
        options["clean_start"] = broker.session_s == 0
        options["properties"] = _connect_properties(broker)
    keepalive_s = _ping_after(broker.keepalive_s)
    await in_thread(
        lambda: client.connect(broker.host, broker.port, keepalive_s, **options), "mqtt-connect"
    )


def packet_bytes(topic: str, payload: bytes) -> int:
    """Return the size that a PUBLISH packet of this message has at most."""
    return PACKET_HEAD + len(topic.encode()) + len(payload)


def coming_bytes(client: paho.Client) -> int:
    """Return the size that a packet which is being read says it has."""
    return client._in_packet["remaining_length"]  # noqa: SLF001 (there is no public word)


def _ping_after(keepalive_s: int) -> int:
    """Return after how many silent seconds to ask; paho waits as long again, and looks each 1 s."""
    return max(1, keepalive_s * 3 // 4 - 1)


def _connect_properties(broker: Broker) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = broker.session_s
    properties.ReceiveMaximum = broker.window
    properties.MaximumPacketSize = MAX_PACKET_BYTES
    return properties
