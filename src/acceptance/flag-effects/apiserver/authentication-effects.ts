/** Effects of the flags for authentication, with OIDC issuers, webhooks and proxies over TLS. */
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Test } from "tap";
import { renderKubeconfig } from "../../../client/kubeconfig/kubeconfig.ts";
import { jsonResponse } from "../../../http/respond.ts";
import { listen } from "../../../http/server/server.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { startTestIssuer } from "../../../testing/auth/test-issuer.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../../testing/http/test-certificates.ts";
import { startAndClose } from "./support.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests read responses of all kinds
type Json = any;

interface Server extends AsyncDisposable {
  readonly port: number;
  readonly clock: { now(): number; advance(milliseconds: number): Promise<void> };
  send(
    line: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: number; readonly json: Json }>;
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
}

type Settings = Readonly<Record<string, string>>;
type StartServer = (settings: Settings) => Promise<Server>;
type Effect = (t: Test) => Promise<void>;

const WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/** The user of a bearer token, or the status of the refusal. */
async function whoIs(server: Server, token: string): Promise<Json> {
  const { status, json } = await server.send(`POST ${WHOAMI}`, {}, { authorization: `Bearer ${token}` });
  return status === 201 ? json.status.userInfo : status;
}

export function authenticationEffects(startServer: StartServer): Readonly<Record<string, Effect>> {
  return {
    ...issuerEffects(startServer),
    ...webhookEffects(startServer),
    ...proxyEffects(startServer),
    ...fileEffects(startServer),
  };
}

function issuerEffects(startServer: StartServer) {
  /** Starts a server that trusts an issuer; returns the user of a token with `claims`. */
  const authenticate = async (t: Test, settings: Settings, claims: object = {}): Promise<Json> => {
    await using issuer = await startTestIssuer(() => systemClock.now());
    const ca = join(t.testdir({ "ca.crt": issuer.ca }), "ca.crt");
    const basic = { "oidc-issuer-url": issuer.url, "oidc-client-id": "client", "oidc-ca-file": ca };
    await using server = await startServer({ ...basic, ...settings });
    const found = await whoIs(server, issuer.token(claims as Readonly<Record<string, unknown>>));
    return typeof found === "number" ? found : { ...found, username: found.username.replace(issuer.url, "URL") };
  };
  return {
    "oidc-issuer-url": async (t) => {
      t.match(await authenticate(t, {}), { username: "URL#jo", groups: ["system:authenticated"] });
      t.equal(await authenticate(t, {}, { iss: "https://other.example.com" }), 401);
    },
    "oidc-client-id": async (t) => {
      t.equal(await authenticate(t, { "oidc-client-id": "another" }), 401);
      t.match(await authenticate(t, { "oidc-client-id": "another" }, { aud: ["client", "another"] }), {
        username: "URL#jo",
      });
    },
    "oidc-ca-file": async (t) => {
      t.equal(await authenticate(t, { "oidc-ca-file": "" }), 401, "the host does not trust the CA");
      await t.rejects(
        authenticate(t, { "oidc-ca-file": "/nowhere" }),
        /--oidc-ca-file="\/nowhere": there is no such file/,
      );
      await using issuer = await startTestIssuer(() => systemClock.now());
      await using otherIssuer = await startTestIssuer(() => systemClock.now());
      const file = join(t.testdir({ "ca.crt": otherIssuer.ca }), "ca.crt");
      const settings = { "oidc-issuer-url": issuer.url, "oidc-client-id": "client", "oidc-ca-file": file };
      await using server = await startServer(settings);
      t.equal(await whoIs(server, issuer.token()), 401);
      writeFileSync(file, issuer.ca);
      await server.until("the file to be read again", async () => (await whoIs(server, issuer.token())) !== 401);
    },
    "oidc-username-claim": async (t) => {
      const settings = { "oidc-username-claim": "email" };
      t.match(await authenticate(t, settings, { email: "jo@example.com" }), { username: "jo@example.com" });
      t.equal(await authenticate(t, settings, { email: "jo@example.com", email_verified: false }), 401);
      t.equal(await authenticate(t, settings), 401);
    },
    "oidc-username-prefix": async (t) => {
      t.match(await authenticate(t, { "oidc-username-prefix": "x:" }), { username: "x:jo" });
      t.match(await authenticate(t, { "oidc-username-prefix": "-" }), { username: "jo" });
    },
    "oidc-groups-claim": async (t) => {
      const settings = { "oidc-groups-claim": "roles" };
      t.match(await authenticate(t, settings, { roles: ["a", "b"] }), { groups: ["a", "b", "system:authenticated"] });
      t.match(await authenticate(t, settings, { roles: "a" }), { groups: ["a", "system:authenticated"] });
      t.equal(await authenticate(t, settings, { roles: [1] }), 401);
    },
    "oidc-groups-prefix": async (t) => {
      const settings = { "oidc-groups-claim": "roles", "oidc-groups-prefix": "x:" };
      t.match(await authenticate(t, settings, { roles: ["a"] }), { groups: ["x:a", "system:authenticated"] });
    },
    "oidc-required-claim": async (t) => {
      const settings = { "oidc-required-claim": "hd=example.com" };
      t.match(await authenticate(t, settings, { hd: "example.com" }), { username: "URL#jo" });
      for (const claims of [{}, { hd: "else" }, { hd: ["example.com"] }])
        t.equal(await authenticate(t, settings, claims), 401);
    },
    "oidc-signing-algs": async (t) => {
      t.equal(await authenticate(t, { "oidc-signing-algs": "ES256" }), 401);
      t.match(await authenticate(t, { "oidc-signing-algs": "ES256,RS256" }), { username: "URL#jo" });
    },
    "authentication-config": async (t) => {
      await using issuer = await startTestIssuer(() => systemClock.now());
      const file = join(t.testdir({}), "authentication.yaml");
      const write = (username: string, anonymous: object): void =>
        writeFileSync(
          file,
          JSON.stringify({
            apiVersion: "apiserver.svc.io/v1beta1",
            kind: "AuthenticationConfiguration",
            jwt: [
              {
                issuer: { url: issuer.url, audiences: ["client"], certificateAuthority: issuer.ca },
                claimMappings: { username: { expression: username } },
              },
            ],
            anonymous,
          }),
        );
      write("'a:' + claims.sub", { enabled: true, conditions: [{ path: "/livez" }] });
      await using server = await startServer({ "authentication-config": file });
      const { username } = await whoIs(server, issuer.token());
      t.equal(username, "a:jo");
      const open = async (path: string) => (await server.send(`GET ${path}`, undefined, {})).status;
      t.same([await open("/livez"), await open("/version")], [200, 401]);
      write("'b:' + claims.sub", { enabled: false });
      await server.until(
        "the file to be read again",
        async () => (await whoIs(server, issuer.token())).username === "b:jo",
      );
      t.equal(await open("/livez"), 401);
      write("claims.", { enabled: true });
      await server.clock.advance(120_000);
      t.equal((await whoIs(server, issuer.token({ jti: "2" }))).username, "b:jo", "an invalid file has no effect");
      await t.rejects(
        startAndClose({ "authentication-config": file }),
        /jwt\[0\]\.claimMappings\.username\.expression: Invalid/,
      );
      write("claims.sub", { enabled: true });
      const both = { "authentication-config": file, "anonymous-auth": "true" };
      await t.rejects(startAndClose(both), /--anonymous-auth flag cannot be set when anonymous field is configured/);
      const everything = { "authentication-config": file, "authorization-mode": "AlwaysAllow" };
      await using refusing = await startServer(everything);
      const refused = await refusing.send("GET /livez", undefined, {});
      t.equal(refused.status, 401, "AlwaysAllow refuses anonymous requests that the file enables");
    },
  } satisfies Readonly<Record<string, Effect>>;
}

function webhookEffects(startServer: StartServer) {
  const withTokenWebhook = async (
    t: Test,
    settings: Settings,
    look: (server: Server, reviews: Json[]) => Promise<void>,
  ) => {
    const { ca, server: pair } = await makeServerCertificate();
    const reviews: Json[] = [];
    await using hook = await listen({
      handler: async (sent) => {
        const chunks: Uint8Array[] = [];
        for await (const chunk of sent.body) chunks.push(chunk);
        const review = JSON.parse(Buffer.concat(chunks).toString()) as Json;
        reviews.push(review);
        const authenticated = review.spec.token === "good";
        return jsonResponse(200, {
          ...review,
          status: { authenticated, user: { username: "wendy", groups: ["hooks"] } },
        });
      },
      log: silentLogger,
      clock: systemClock,
      host: "127.0.0.1",
      tls: { cert: pair.cert, key: pair.key },
    });
    const server = `https://127.0.0.1:${hook.port}/tokens`;
    const file = join(t.testdir({}), "hook.yaml");
    writeFileSync(file, renderKubeconfig({ server, cluster: "hook", user: "server", ca: ca.cert }));
    await using running = await startServer({ "authentication-token-webhook-config-file": file, ...settings });
    await look(running, reviews);
  };
  return {
    "authentication-token-webhook-config-file": (t) =>
      withTokenWebhook(t, {}, async (server, reviews) => {
        t.match(await whoIs(server, "good"), { username: "wendy", groups: ["hooks", "system:authenticated"] });
        t.equal(await whoIs(server, "bad"), 401);
        t.match(reviews[0], { apiVersion: "authentication.k8s.io/v1beta1", kind: "TokenReview" });
        t.same(reviews[0].spec, { token: "good", audiences: ["https://kubernetes.default.svc"] });
        const missing = { "authentication-token-webhook-config-file": "/nowhere" };
        await t.rejects(startAndClose(missing), /--authentication-token-webhook-config-file="\/nowhere"/);
      }),
    "authentication-token-webhook-version": (t) =>
      withTokenWebhook(t, { "authentication-token-webhook-version": "v1" }, async (server, reviews) => {
        await whoIs(server, "good");
        t.equal(reviews[0].apiVersion, "authentication.k8s.io/v1");
      }),
    "authentication-token-webhook-cache-ttl": (t) =>
      withTokenWebhook(t, { "authentication-token-webhook-cache-ttl": "10s" }, async (server, reviews) => {
        for (const token of ["good", "good", "bad", "bad"]) await whoIs(server, token);
        t.equal(reviews.length, 2);
        await server.clock.advance(11_000);
        for (const token of ["good", "bad"]) await whoIs(server, token);
        t.equal(reviews.length, 4);
      }),
  } satisfies Readonly<Record<string, Effect>>;
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

function proxyEffects(startServer: StartServer) {
  /** The user that a server authenticates for a proxy with a certificate for `name`. */
  const authenticateByHeaders = async (
    t: Test,
    settings: Settings,
    headers: Headers,
    name = "front",
  ): Promise<Json> => {
    const ca = await makeCertificate({ subject: [{ CN: ["proxies"] }], authority: {} });
    const other = await makeCertificate({ subject: [{ CN: ["others"] }], authority: {} });
    const issuer = name === "stranger" ? other : ca;
    const pair = await makeCertificate({ subject: [{ CN: [name] }], issuer, usages: [CLIENT_AUTH] });
    const file = join(t.testdir({ "ca.crt": ca.cert }), "ca.crt");
    const basic = { "requestheader-client-ca-file": file, "requestheader-username-headers": "X-Remote-User" };
    const isOff = settings["requestheader-client-ca-file"] === "";
    await using server = await startServer(isOff ? {} : { ...basic, ...settings });
    return await overNetwork(server.port, pair, headers);
  };
  const jo = { "x-remote-user": "jo" };
  return {
    "requestheader-client-ca-file": async (t) => {
      t.match(await authenticateByHeaders(t, {}, jo), { username: "jo", groups: ["system:authenticated"] });
      t.equal(await authenticateByHeaders(t, {}, jo, "stranger"), 401);
      t.match(await authenticateByHeaders(t, { "requestheader-client-ca-file": "" }, jo), {
        username: "system:anonymous",
      });
    },
    "requestheader-allowed-names": async (t) => {
      const settings = { "requestheader-allowed-names": "front,back" };
      t.match(await authenticateByHeaders(t, settings, jo), { username: "jo" });
      t.equal(await authenticateByHeaders(t, settings, jo, "side"), 401);
    },
    "requestheader-username-headers": async (t) => {
      const settings = { "requestheader-username-headers": "X-First,X-Second" };
      t.match(await authenticateByHeaders(t, settings, { "x-second": "b" }), { username: "b" });
      t.match(await authenticateByHeaders(t, settings, { "x-second": "b", "x-first": ["a", "c"] }), { username: "a" });
      t.match(await authenticateByHeaders(t, settings, jo), { username: "system:anonymous" });
    },
    "requestheader-group-headers": async (t) => {
      const settings = { "requestheader-group-headers": "X-Remote-Group" };
      const headers = { ...jo, "x-remote-group": ["a", "b, system:masters"] };
      const groups = ["a", "b, system:masters", "system:authenticated"];
      t.same((await authenticateByHeaders(t, settings, headers)).groups, groups, "a comma does not separate groups");
    },
    "requestheader-uid-headers": async (t) => {
      const settings = { "requestheader-uid-headers": "X-Remote-Uid" };
      t.equal((await authenticateByHeaders(t, settings, { ...jo, "x-remote-uid": "7" })).uid, "7");
    },
    "requestheader-extra-headers-prefix": async (t) => {
      const settings = { "requestheader-extra-headers-prefix": "X-Remote-Extra-" };
      const headers = { ...jo, "x-remote-extra-example.com%2fteam": ["a", "b"], "x-remote-extra-__proto__": "c" };
      const { extra } = await authenticateByHeaders(t, settings, headers);
      t.same(extra["example.com/team"], ["a", "b"]);
      t.same(Object.keys(extra).sort(), ["__proto__", "example.com/team"]);
    },
  } satisfies Readonly<Record<string, Effect>>;
}

function overNetwork(
  port: number,
  { cert, key }: { readonly cert: string; readonly key: string },
  headers: Headers,
): Promise<Json> {
  const target = { host: "127.0.0.1", port, method: "POST", path: WHOAMI, cert, key };
  return new Promise((resolve, reject) => {
    const all = { "content-type": "application/json", ...headers } as Record<string, string | string[]>;
    const sent = request({ ...target, headers: all, rejectUnauthorized: false, agent: false }, (response) => {
      const read = text(response).then((output) =>
        response.statusCode === 201 ? (JSON.parse(output) as Json).status.userInfo : response.statusCode,
      );
      resolve(read);
    });
    sent.on("error", reject);
    sent.end("{}");
  });
}

function fileEffects(startServer: StartServer) {
  return {
    "enable-bootstrap-token-auth": async (t) => {
      for (const enabled of ["true", "false"]) {
        await using server = await startServer({ "enable-bootstrap-token-auth": enabled });
        for (const [namespace, type, id] of [
          ["svc-system", "bootstrap.svc.io/token", "abcdef"],
          ["kube-system", "bootstrap.kubernetes.io/token", "ghijkl"],
        ] as const) {
          const stringData = {
            "token-id": id,
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:room1",
          };
          const secret = { metadata: { name: `bootstrap-token-${id}` }, type, stringData };
          t.equal((await server.send(`POST /api/v1/namespaces/${namespace}/secrets`, secret)).status, 201);
          const groups = ["system:bootstrappers", "system:bootstrappers:room1", "system:authenticated"];
          const known = { username: `system:bootstrap:${id}`, groups };
          t.match(await whoIs(server, `${id}.0123456789abcdef`), enabled === "true" ? known : 401);
          t.equal(await whoIs(server, `${id}.0123456789abcdeg`), 401);
        }
      }
    },
  } satisfies Readonly<Record<string, Effect>>;
}
