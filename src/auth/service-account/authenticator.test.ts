import { createHmac, createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { chmodSync, readFileSync, statSync } from "node:fs";
import t from "tap";
import type { ApiObject } from "../../api/kind.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { BearerToken, type TokenUser } from "../authn/token/bearer-token.ts";
import { type BoundReference, serviceAccountAuthenticator } from "./authenticator.ts";
import { createPayload, type TokenClaims } from "./claims.ts";
import { createTokenIssuer } from "./issuer.ts";
import { type Algorithm, signJws } from "./jws.ts";
import { jsonWebKey, loadOrCreateSigningKey, readSigningKey, readVerificationKeys } from "./keys.ts";

const ISSUER = "https://ids.example.com";
const pem = (curve: string): string =>
  generateKeyPairSync("ec", { namedCurve: curve }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const key = readSigningKey("key", pem("prime256v1"));
const issuer = createTokenIssuer(ISSUER, async () => key);

interface TestContext {
  readonly clock: FakeClock;
  tokens(token: string, audiences: readonly string[]): Promise<TokenUser | undefined>;
  /** The audit annotations. */
  readonly annotations: ReadonlyMap<string, string>;
  readonly objects: Map<string, NonNullable<ApiObject["metadata"]>>;
  /** Claims of a token for `shop/till` that is bound to a pod, with `changes`. */
  claims(changes?: Partial<TokenClaims>): TokenClaims;
}

function createContext(): TestContext {
  const clock = new FakeClock();
  const objects = new Map([
    ["ServiceAccount/shop/till", { uid: "1" }],
    ["Pod/shop/web", { uid: "2" }],
    ["Node//n1", { uid: "3" }],
    ["Secret/shop/s", { uid: "4" }],
  ]);
  const find = async ({ kind, namespace, name }: BoundReference): Promise<ApiObject | undefined> => {
    const metadata = objects.get(`${kind}/${namespace}/${name}`);
    return metadata === undefined ? undefined : { metadata };
  };
  const authenticate = serviceAccountAuthenticator({
    issuers: [ISSUER],
    audiences: [ISSUER],
    keys: async () => [key],
    lookUpSecrets: true,
    find,
    clock,
  });
  const annotations = new Map<string, string>();
  const listener = { annotate: (name: string, value: string) => void annotations.set(name, value) };
  const tokens = async (token: string, requested: readonly string[]) =>
    await authenticate(new BearerToken(token, listener), requested);
  const now = Math.floor(clock.now() / 1000);
  const claims = (changes: Partial<TokenClaims> = {}): TokenClaims => ({
    issuer: ISSUER,
    id: "t1",
    audiences: [ISSUER],
    now,
    expires: now + 3600,
    namespace: "shop",
    account: { name: "till", uid: "1" },
    pod: { name: "web", uid: "2" },
    ...changes,
  });
  return { clock, tokens, objects, claims, annotations };
}

t.test("serviceAccountAuthenticator() returns the account and the objects that the token is bound to", async (t) => {
  const { tokens, claims } = createContext();
  const token = await issuer.issue(claims({ node: { name: "n1", uid: "3" }, audiences: ["vault", ISSUER] }));
  t.same(await tokens(token, [ISSUER, "other"]), {
    user: {
      name: "system:serviceaccount:shop:till",
      uid: "1",
      groups: ["system:serviceaccounts", "system:serviceaccounts:shop"],
      extra: {
        "authentication.kubernetes.io/credential-id": ["JTI=t1"],
        "authentication.kubernetes.io/node-name": ["n1"],
        "authentication.kubernetes.io/node-uid": ["3"],
        "authentication.kubernetes.io/pod-name": ["web"],
        "authentication.kubernetes.io/pod-uid": ["2"],
      },
    },
    audiences: [ISSUER],
  });
  t.equal((await tokens(token, [ISSUER]))?.user, (await tokens(token, ["vault"]))?.user, "one value for each token");
  const refused = tokens(token, ["else"]);
  await t.rejects(refused, {
    message: `token audiences ["vault" "${ISSUER}"] is invalid for the target audiences ["else"]`,
  });
});

t.test("serviceAccountAuthenticator() verifies a token again after the keys changed", async (t) => {
  const other = readSigningKey("other", pem("prime256v1"));
  let keys = [key, other];
  let keysVersion = 1;
  let requested = 0;
  const authenticate = serviceAccountAuthenticator({
    ...{ issuers: [ISSUER], audiences: [ISSUER], lookUpSecrets: true, clock: new FakeClock(Date.now()) },
    find: () => ({ metadata: { uid: "1" } }),
    keysVersion: () => keysVersion,
    keys: async () => {
      requested++;
      return keys;
    },
  });
  const now = Math.floor(Date.now() / 1000);
  const bare = { issuer: ISSUER, id: "t", audiences: [ISSUER], now, expires: now + 3600, namespace: "shop" };
  const token = await issuer.issue({ ...bare, account: { name: "till", uid: "1" } });
  const send = async () => await authenticate(new BearerToken(token), [ISSUER]);
  t.ok(await send());
  t.ok(await send());
  t.equal(requested, 1, "cached");
  keysVersion = 2;
  t.ok(await send());
  t.equal(requested, 2, "verified again");
  keys = [other];
  keysVersion = 3;
  await t.rejects(send(), { message: "invalid signature" });
  await t.rejects(send(), { message: "invalid signature" });
  keys = [key];
  keysVersion = 4;
  t.ok(await send());
});

t.test("serviceAccountAuthenticator() rejects expired and future tokens, with a minute of leeway", async (t) => {
  const { clock, tokens, claims } = createContext();
  const token = await issuer.issue(claims());
  const send = () => tokens(token, [ISSUER]);
  await clock.advance(3_659_000);
  t.ok(await send());
  await clock.advance(2_000);
  await t.rejects(send(), { message: "service account token has expired" });
  const { now } = claims();
  const early = await issuer.issue(claims({ now: now + 7200, expires: now + 9000 }));
  await t.rejects(tokens(early, [ISSUER]), { message: "service account token is not valid yet" });
});

t.test("serviceAccountAuthenticator() rejects a token whose bound object was deleted or replaced", async (t) => {
  const cases: readonly [string, Partial<TokenClaims>][] = [
    ["ServiceAccount/shop/till", {}],
    ["Pod/shop/web", {}],
    ["Secret/shop/s", { pod: undefined, secret: { name: "s", uid: "4" } }],
    ["Node//n1", { pod: undefined, node: { name: "n1", uid: "3" } }],
  ];
  for (const [name, changes] of cases) {
    const { clock, tokens, objects, claims } = createContext();
    const token = await issuer.issue(claims(changes));
    const send = () => tokens(token, [ISSUER]);
    t.ok(await send(), name);
    const metadata = objects.get(name);
    objects.set(name, { ...metadata, deletionTimestamp: new Date(clock.now()).toISOString() });
    t.ok(await send(), `${name}: within the leeway`);
    await clock.advance(61_000);
    await t.rejects(send(), { name: "StatusError" }, `${name}: being deleted`);
    objects.set(name, { uid: "other" });
    await t.rejects(send(), { message: /UID \(other\) does not match/ }, name);
    objects.delete(name);
    await t.rejects(send(), { message: "service account token has been invalidated" }, name);
  }
});

t.test("serviceAccountAuthenticator() adds an audit annotation for stale tokens", async (t) => {
  const { clock, tokens, claims, annotations } = createContext();
  const now = Math.floor(clock.now() / 1000);
  const token = await issuer.issue(claims({ warnAfter: now + 100 }));
  await clock.advance(100_000);
  await tokens(token, [ISSUER]);
  t.equal(annotations.size, 0);
  await clock.advance(7_900);
  await tokens(token, [ISSUER]);
  const stale = "subject: system:serviceaccount:shop:till, seconds after warning threshold: 7";
  t.same([...annotations], [["authentication.k8s.io/stale-token", stale]]);
});

t.test("serviceAccountAuthenticator() accepts only signatures of its keys with the algorithm of the key", async (t) => {
  const { tokens, claims } = createContext();
  const payload = createPayload(claims());
  const [head = "", body = "", tail = ""] = (await issuer.issue(claims())).split(".");
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const secret = key.publicKey.export({ type: "spki", format: "pem" });
  const shared = `${encode({ alg: "HS256" })}.${body}`;
  const hmac = createHmac("sha256", secret).update(shared).digest("base64url");
  const otherKey = readSigningKey("other", pem("prime256v1"));
  const forged: readonly (readonly [string, string])[] = [
    ["changed", `${head}.${encode({ ...payload, sub: "system:serviceaccount:shop:admin" })}.${tail}`],
    ["another key", signJws(payload, otherKey)],
    ["another key that names this one", signJws(payload, { ...otherKey, keyId: key.keyId })],
    ["another algorithm", `${encode({ alg: "RS256", kid: key.keyId })}.${body}.${tail}`],
  ];
  for (const [what, token] of forged) await t.rejects(tokens(token, [ISSUER]), { name: "StatusError" }, what);
  const der = sign("sha256", Buffer.from(`${head}.${body}`), key.privateKey).toString("base64url");
  await t.rejects(tokens(`${head}.${body}.${der}`, [ISSUER]), { name: "StatusError" }, "a signature in DER");
  const strange: readonly (readonly [string, string])[] = [
    ["no signature", `${encode({ alg: "none" })}.${body}.`],
    ["none at all", `${encode({ alg: "none" })}.${body}.AA`],
    ["a shared secret", `${shared}.${hmac}`],
    ["demands", `${encode({ alg: "ES256", crit: ["b64"] })}.${body}.${tail}`],
    ["another issuer", signJws({ ...payload, iss: "https://else.example.com" }, key)],
    ["no issuer", signJws({ ...payload, iss: [ISSUER] }, key)],
    ["two parts", `${head}.${body}`],
    ["four parts", `${head}.${body}.${tail}.${tail}`],
    ["no JSON", `${head}.AAAA.${tail}`],
    ["empty", ""],
  ];
  for (const [what, token] of strange) t.equal(await tokens(token, [ISSUER]), undefined, what);
});

t.test("serviceAccountAuthenticator() rejects malformed claims", async (t) => {
  const { tokens, claims } = createContext();
  const payload = createPayload(claims());
  const own = payload["kubernetes.io"] as Readonly<Record<string, unknown>>;
  const bad: readonly Readonly<Record<string, unknown>>[] = [
    { ...payload, "kubernetes.io": undefined },
    { ...payload, "kubernetes.io": { ...own, namespace: 1 } },
    { ...payload, "kubernetes.io": { ...own, pod: "web" } },
    { ...payload, "kubernetes.io": { ...own, serviceaccount: { uid: "1" } } },
    { ...payload, sub: "system:serviceaccount:shop:admin" },
    { ...payload, aud: [1] },
    { ...payload, exp: "never" },
  ];
  for (const claimed of bad) {
    await t.rejects(tokens(signJws(claimed, key), [ISSUER]), { name: "StatusError" }, JSON.stringify(claimed));
  }
  const unnamed = signJws({ ...payload, "kubernetes.io": { ...own, serviceaccount: { name: "till" } } }, key);
  await t.rejects(tokens(unnamed, [ISSUER]), /does not match claim/, "an account without a uid");
});

t.test("readVerificationKeys() reads public keys, private keys and certificates", async (t) => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const texts: readonly (readonly [string, string, Algorithm])[] = [
    ["spki", rsa.publicKey.export({ type: "spki", format: "pem" }).toString(), "RS256"],
    ["pkcs1", rsa.publicKey.export({ type: "pkcs1", format: "pem" }).toString(), "RS256"],
    ["private", rsa.privateKey.export({ type: "pkcs1", format: "pem" }).toString(), "RS256"],
    ["P-384", pem("secp384r1"), "ES384"],
  ];
  for (const [what, text, algorithm] of texts) t.equal(readVerificationKeys("f", text)[0]?.algorithm, algorithm, what);
  t.equal(readVerificationKeys("f", texts.map(([, text]) => text).join("\n")).length, 4);
  const other = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  for (const text of ["", "x", other, pem("secp256k1")]) {
    t.throws(() => readVerificationKeys("/keys/f", text), {
      message: /^Cannot use \/keys\/f: it has no RSA or ECDSA key/,
    });
  }
  const [first] = readVerificationKeys("f", texts[0]?.[1] ?? "");
  t.match(first && jsonWebKey(first), { use: "sig", kty: "RSA", alg: "RS256", kid: /^[\w-]{43}$/, e: "AQAB" });
});

t.test("loadOrCreateSigningKey() generates a key once, with mode 0600", async (t) => {
  const path = `${t.testdir()}/state/sa.key`;
  const created = await loadOrCreateSigningKey(path);
  t.equal(statSync(path).mode & 0o777, 0o600);
  chmodSync(path, 0o644);
  t.equal((await loadOrCreateSigningKey(path)).keyId, created.keyId);
  t.equal(statSync(path).mode & 0o777, 0o600, "the mode is restored");
  t.equal(createPrivateKey(readFileSync(path)).asymmetricKeyType, "rsa");
});
