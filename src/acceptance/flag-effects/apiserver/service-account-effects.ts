/** Effects of the flags for tokens of service accounts. */
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Test } from "tap";
import { signJws } from "../../../auth/service-account/jws.ts";
import { startFakeSigner } from "../../../testing/auth/fake-signer.ts";
import { startAndClose } from "./support.ts";

interface Server extends AsyncDisposable {
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
  send(
    line: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{
    readonly status: number;
    readonly headers: Readonly<Record<string, string | readonly string[]>>;
    // biome-ignore lint/suspicious/noExplicitAny: tests read responses of all kinds
    readonly json: any;
  }>;
}

type StartServer = (settings: Readonly<Record<string, string>>) => Promise<Server>;
type Effect = (t: Test) => Promise<void>;

const ACCOUNT = "/api/v1/namespaces/default/serviceaccounts";
const DISCOVERY = "GET /.well-known/openid-configuration";
const ISSUER = "https://ids.example.com";

/** Keys in PEM. */
export function makeKeys(type: "rsa" | "ec"): { readonly publicKey: string; readonly privateKey: string } {
  const { publicKey, privateKey } =
    type === "rsa"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  return {
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: tokens have any claims
export function parseToken(token: string): { readonly header: any; readonly payload: any } {
  const [header, payload] = token
    .split(".", 2)
    .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()) as unknown);
  return { header, payload };
}

/** Creates an account and returns a token of it. */
async function createToken(server: Server, name: string, spec: object = {}): Promise<string> {
  await server.send(`POST ${ACCOUNT}`, { metadata: { name } });
  return (await server.send(`POST ${ACCOUNT}/${name}/token`, { spec })).json.status.token;
}

async function isAuthenticated(server: Server, token: string): Promise<boolean> {
  return (await server.send("GET /version", undefined, { authorization: `Bearer ${token}` })).status === 200;
}

export function serviceAccountEffects(startServer: StartServer) {
  const [current, former] = [makeKeys("ec"), makeKeys("rsa")];
  const filesOf = (t: Test) => {
    const directory = t.testdir({
      "sa.key": current.privateKey,
      "sa.pub": current.publicKey,
      "former.key": former.privateKey,
      "former.pub": former.publicKey,
    });
    const file = (name: string): string => join(directory, name);
    const signing = {
      "service-account-signing-key-file": file("sa.key"),
      "service-account-key-file": file("sa.pub"),
    };
    return { file, signing };
  };
  return {
    "service-account-issuer": async (t) => {
      await using server = await startServer({ "service-account-issuer": ISSUER });
      const token = await createToken(server, "a");
      t.match(parseToken(token).payload, { iss: ISSUER, aud: [ISSUER] });
      t.ok(await isAuthenticated(server, token));
      t.equal((await server.send(DISCOVERY)).json.issuer, ISSUER);
      await using other = await startServer({ "service-account-issuer": "no-address" });
      t.equal((await other.send(DISCOVERY)).status, 404, "no discovery document");
      await t.rejects(startAndClose({ "service-account-issuer": "1:2" }), /--service-account-issuer/);
    },
    "api-audiences": async (t) => {
      await using server = await startServer({ "api-audiences": "api,other" });
      t.same(parseToken(await createToken(server, "a")).payload.aud, ["api", "other"]);
      t.ok(await isAuthenticated(server, await createToken(server, "b", { audiences: ["other"] })));
      t.notOk(await isAuthenticated(server, await createToken(server, "c", { audiences: ["vault"] })));
    },
    "service-account-signing-key-file": async (t) => {
      const { file, signing } = filesOf(t);
      await using server = await startServer(signing);
      const token = await createToken(server, "a");
      t.equal(parseToken(token).header.alg, "ES256");
      t.ok(await isAuthenticated(server, token));
      // The previous key is in none of the files now.
      await writeFile(file("sa.pub"), former.publicKey);
      await writeFile(file("sa.key"), former.privateKey);
      await server.until(
        "tokens of the previous key to be rejected",
        async () => !(await isAuthenticated(server, token)),
      );
      const newer = await createToken(server, "b");
      t.equal(parseToken(newer).header.alg, "RS256", "the files are read again");
      t.ok(await isAuthenticated(server, newer));
      const broken = { ...signing, "service-account-signing-key-file": file("sa.pub") };
      await t.rejects(startAndClose(broken), /sa\.pub: it has no private RSA or ECDSA key/);
    },
    "service-account-key-file": async (t) => {
      const { file, signing } = filesOf(t);
      const kept = file("store");
      const before = {
        "kvstore-servers": `level://${kept}`,
        "service-account-signing-key-file": file("former.key"),
        "service-account-key-file": file("former.pub"),
      };
      const old = await startServer(before);
      const token = await createToken(old, "a");
      await old[Symbol.asyncDispose]();
      const after = { ...signing, "kvstore-servers": `level://${kept}` };
      for (const [keys, known] of [
        [file("sa.pub"), false],
        [`${file("sa.pub")},${file("former.pub")}`, true],
      ] as const) {
        await using server = await startServer({ ...after, "service-account-key-file": keys });
        t.equal(await isAuthenticated(server, token), known, keys);
      }
    },
    "service-account-jwks-uri": async (t) => {
      await using server = await startServer({ "service-account-jwks-uri": "https://keys.example.com/jwks" });
      t.equal((await server.send(DISCOVERY)).json.jwks_uri, "https://keys.example.com/jwks");
    },
    "service-account-signing-endpoint": async (t) => {
      const gate = { "feature-gates": "ExternalServiceAccountTokenSigner=true" };
      const settings = { ...gate, "service-account-signing-endpoint": await startFakeSigner(t, {}) };
      await using server = await startServer(settings);
      const token = await createToken(server, "a", { expirationSeconds: 86_400 });
      const { header, payload } = parseToken(token);
      t.match(header, { alg: "ES256", kid: "k1" });
      t.equal(payload.exp - payload.iat, 7200, "limited by the signer");
      t.ok(await isAuthenticated(server, token));
      const [key, ...more] = (await server.send("GET /openid/v1/jwks")).json.keys;
      t.match([key.kid, more], ["k1", []]);
      const tooLong = { ...settings, "service-account-max-token-expiration": "3h" };
      await t.rejects(startAndClose(tooLong), /--service-account-max-token-expiration of 10800 seconds/);
      await t.rejects(
        startAndClose({ ...gate, "service-account-signing-endpoint": "/tmp/absent" }),
        /signing-endpoint="\/tmp\/absent"/,
      );
    },
    "service-account-lookup": async (t) => {
      const { signing } = filesOf(t);
      for (const lookup of ["true", "false"]) {
        await using server = await startServer({ ...signing, "service-account-lookup": lookup });
        const token = await legacyToken(server, current.privateKey);
        t.equal(await isAuthenticated(server, token), lookup === "false", `without its secret, lookup=${lookup}`);
        const secret = {
          metadata: { name: "old-token", annotations: { "kubernetes.io/service-account.name": "old" } },
          type: "kubernetes.io/service-account-token",
          stringData: { token },
        };
        t.equal((await server.send("POST /api/v1/namespaces/default/secrets", secret)).status, 201);
        t.ok(await isAuthenticated(server, token));
        const { labels } = (await server.send("GET /api/v1/namespaces/default/secrets/old-token")).json.metadata;
        const day = "kubernetes.io/legacy-token-last-used";
        t.match(labels?.[day], lookup === "true" ? /^\d{4}-\d\d-\d\d$/ : undefined);
        const marked = { metadata: { labels: { "kubernetes.io/legacy-token-invalid-since": "2025-01-01" } } };
        const merge = { "content-type": "application/merge-patch+json" };
        const patched = await server.send("PATCH /api/v1/namespaces/default/secrets/old-token", marked, merge);
        t.equal(patched.status, 200);
        t.equal(await isAuthenticated(server, token), lookup === "false", "marked invalid");
      }
    },
    "service-account-max-token-expiration": async (t) => {
      await using server = await startServer({ "service-account-max-token-expiration": "2h" });
      await server.send(`POST ${ACCOUNT}`, { metadata: { name: "a" } });
      const response = await server.send(`POST ${ACCOUNT}/a/token`, { spec: { expirationSeconds: 9000 } });
      t.equal(response.json.spec.expirationSeconds, 7200);
      t.match(String(response.headers.warning), /requested expiration of 9000 seconds shortened to 7200 seconds/);
      await t.rejects(startAndClose({ "service-account-max-token-expiration": "5m" }), /between 1h and 2\^32 seconds/);
    },
    "service-account-extend-token-expiration": async (t) => {
      for (const [extend, seconds] of [
        ["true", 31_536_000],
        ["false", 3607],
      ] as const) {
        await using server = await startServer({ "service-account-extend-token-expiration": extend });
        const { exp, iat, "kubernetes.io": own } = parseToken(await podToken(server)).payload;
        t.equal(exp - iat, seconds);
        t.equal(own.warnafter, extend === "true" ? iat + 3607 : undefined);
      }
    },
  } satisfies Readonly<Record<string, Effect>>;
}

/** A token as the token controller issues it: signed with the same key, without expiry. */
async function legacyToken(server: Server, privateKey: string): Promise<string> {
  const { uid } = (await server.send(`POST ${ACCOUNT}`, { metadata: { name: "old" } })).json.metadata;
  const claim = (name: string) => `kubernetes.io/serviceaccount/${name}`;
  const payload = {
    iss: "kubernetes/serviceaccount",
    sub: "system:serviceaccount:default:old",
    [claim("namespace")]: "default",
    [claim("secret.name")]: "old-token",
    [claim("service-account.name")]: "old",
    [claim("service-account.uid")]: uid,
  };
  return signJws(payload, { algorithm: "ES256", keyId: "", privateKey: createPrivateKey(privateKey) });
}

async function podToken(server: Server): Promise<string> {
  await server.send(`POST ${ACCOUNT}`, { metadata: { name: "a" } });
  const spec = { serviceAccountName: "a", containers: [{ name: "c", image: "i" }] };
  await server.send("POST /api/v1/namespaces/default/pods", { metadata: { name: "p" }, spec });
  const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "p" };
  return await createToken(server, "a", { boundObjectRef, expirationSeconds: 3607 });
}
