// npm's oidc-provider on loopback: node oidc_provider.mjs LIBRARY REDIRECT_URI LEFT_URI; prints its issuer.
// Whoever writes a name is let in; a name is also the group.
import { once } from "node:events";
import { createServer } from "node:http";

const [library, redirectUri, leftUri] = process.argv.slice(2);
const { Provider } = await import(library);
const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://localhost:${server.address().port}`;
// its own page would ask elsewhere for a font
const logoutSource = (context, form) => {
  context.body = `${form}<button form="op.logoutForm" name="logout" value="yes">Sign me out</button>`;
};
const provider = new Provider(issuer, {
  clients: [{ client_id: "edge-ldp", client_secret: "of-the-console", redirect_uris: [redirectUri], post_logout_redirect_uris: [leftUri] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["a test's"] },
  features: { devInteractions: { enabled: false }, rpInitiatedLogout: { logoutSource } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: [id] }) }),
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  loadExistingGrant: async ({ oidc }) => {
    const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope("openid profile email");
    await grant.save();
    return grant;
  },
});
const answer = provider.callback();
server.on("request", async (request, response) => {
  if (!request.url.startsWith("/interaction/")) return answer(request, response);
  if (request.method === "POST") {
    const body = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
    return provider.interactionFinished(request, response, { login: { accountId: body.get("name") } });
  }
  response.setHeader("content-type", "text/html");
  response.end('<form method="post"><input name="name"><button>Continue</button></form>');
});
console.log(issuer);
