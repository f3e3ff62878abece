/** Revoked and forged tokens of service accounts. */
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign, type webcrypto } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import t from "tap";
import { isSignedBy, parseJws } from "../../auth/service-account/jws.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const SHOP = "/api/v1/namespaces/shop";
const REVIEW = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const ACCOUNT = "system:serviceaccount:shop:till";
const LEGACY = "kubernetes.io/service-account-token";

async function startWithAccount(): Promise<TestServer> {
  const server = await startTestServer({
    authorizationModes: ["RBAC"],
    embeddedControllers: ["serviceaccount-token"],
    clusterCa: "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",
  });
  await create(server, "/api/v1/namespaces", { metadata: { name: "shop" } });
  await create(server, `${SHOP}/serviceaccounts`, { metadata: { name: "till" } });
  return server;
}

async function create(server: TestServer, path: string, body: object): Promise<void> {
  const { status, text } = await server.send(`POST ${path}`, { body });
  if (status !== 201) throw new Error(text);
}

async function tokenOf(server: TestServer, boundObjectRef?: object): Promise<string> {
  const options = { body: { spec: boundObjectRef === undefined ? {} : { boundObjectRef } } };
  return (await server.send(`POST ${SHOP}/serviceaccounts/till/token`, options)).json.status.token;
}

/** The username of the bearer, or the status of the refusal. A TokenReview must have the same result. */
async function usernameOf(server: TestServer, token: string): Promise<string> {
  const sent = { body: {}, user: "", headers: { authorization: `Bearer ${token}` } };
  const { status, json } = await server.send(REVIEW, sent);
  const review = await server.send("POST /apis/authentication.k8s.io/v1/tokenreviews", { body: { spec: { token } } });
  const { authenticated = false } = review.json.status as { authenticated?: boolean };
  if (authenticated !== (status === 201)) throw new Error(`the TokenReview differs: ${review.text}`);
  return status === 201 ? json.status.userInfo.username : String(status);
}

const pod = {
  metadata: { name: "web" },
  spec: { serviceAccountName: "till", containers: [{ name: "c", image: "i" }] },
};
const secret = { metadata: { name: "web" } };

/** Objects that tokens are bound to: collection, object and boundObjectRef. */
const boundObjects: Readonly<
  Record<string, readonly [collection: string, object: object, reference: object | undefined]>
> = {
  account: [`${SHOP}/serviceaccounts`, { metadata: { name: "till" } }, undefined],
  pod: [`${SHOP}/pods`, pod, { kind: "Pod", apiVersion: "v1", name: "web" }],
  secret: [`${SHOP}/secrets`, secret, { kind: "Secret", apiVersion: "v1", name: "web" }],
  node: ["/api/v1/nodes", { metadata: { name: "web" } }, { kind: "Node", apiVersion: "v1", name: "web" }],
};

t.test("a bound token gets 401 after its object is deleted, also when another object takes the name", async (t) => {
  for (const [what, [collection, object, reference]] of Object.entries(boundObjects)) {
    await using server = await startWithAccount();
    const { name } = (object as typeof secret).metadata;
    if (what !== "account") await create(server, collection, object);
    const token = await tokenOf(server, reference);
    t.equal(await usernameOf(server, token), ACCOUNT, what);
    t.equal((await server.send(`DELETE ${collection}/${name}?gracePeriodSeconds=0`)).status, 200);
    t.equal(await usernameOf(server, token), "401", `${what} is deleted`);
    await create(server, collection, object);
    t.equal(await usernameOf(server, token), "401", `another ${what} with the name`);
    if (what === "account") continue;
    await server.send(`DELETE ${SHOP}/serviceaccounts/till`);
    t.equal(
      await usernameOf(server, await tokenOf(server).catch(() => token)),
      "401",
      "the account is deleted as well",
    );
  }
});

t.test("a token of a Secret gets 401 after the Secret is deleted or holds another token", async (t) => {
  await using server = await startWithAccount();
  const annotations = { "kubernetes.io/service-account.name": "till" };
  const token = async (name: string): Promise<string> => {
    await create(server, `${SHOP}/secrets`, { metadata: { name, annotations }, type: LEGACY });
    for (let attempt = 0; attempt < 5000; attempt++) {
      await setImmediate();
      const { data } = (await server.send(`GET ${SHOP}/secrets/${name}`)).json as { data?: { token?: string } };
      if (data?.token !== undefined) return Buffer.from(data.token, "base64").toString();
    }
    throw new Error("the Secret has no token");
  };
  const [first, second] = [await token("a"), await token("b")];
  t.equal(await usernameOf(server, first), ACCOUNT);
  const merge = { "content-type": "application/merge-patch+json" };
  const other = { data: { token: Buffer.from(second).toString("base64") } };
  await server.send(`PATCH ${SHOP}/secrets/a`, { body: other, headers: merge });
  t.equal(await usernameOf(server, first), "401", "the Secret holds another token");
  t.equal(await usernameOf(server, second), ACCOUNT);
  await server.send(`DELETE ${SHOP}/secrets/b`);
  t.equal(await usernameOf(server, second), "401", "the Secret is deleted");
});

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

t.test("a token with a forged signature gets 401 for every algorithm and key reference", async (t) => {
  await using server = await startWithAccount();
  const good = await tokenOf(server);
  const [head = "", body = "", tail = ""] = good.split(".");
  const { kid } = JSON.parse(Buffer.from(head, "base64url").toString()) as { kid: string };
  const jwk = (await server.send("GET /openid/v1/jwks")).json.keys[0] as webcrypto.JsonWebKey;
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  const otherKey = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const otherJwk = otherKey.publicKey.export({ format: "jwk" });
  const signWith = (header: object, key: KeyObject = otherKey.privateKey, payload = body): string => {
    const signed = `${encode(header)}.${payload}`;
    return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
  };
  const signWithSecret = (alg: string, secret: string | Buffer): string => {
    const signed = `${encode({ alg, kid })}.${body}`;
    return `${signed}.${createHmac(`sha${alg.slice(2)}`, secret)
      .update(signed)
      .digest("base64url")}`;
  };
  const payload = JSON.parse(Buffer.from(body, "base64url").toString()) as object;
  const boss = encode({ ...payload, sub: "system:serviceaccount:shop:boss" });
  const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  const forged: Readonly<Record<string, string>> = {
    ...Object.fromEntries(
      ["none", "None", "NONE", "nOnE", "", "null", "HS256", "RS256 ", "rs256", "__proto__", "constructor"].flatMap(
        (alg) => [
          [`algorithm ${alg} without a signature`, `${encode({ alg, kid })}.${body}.`],
          [`algorithm ${alg} with the old signature`, `${encode({ alg, kid })}.${body}.${tail}`],
        ],
      ),
    ),
    "no algorithm": `${encode({ kid })}.${body}.${tail}`,
    "a list of algorithms": `${encode({ alg: ["RS256"], kid })}.${body}.${tail}`,
    "the signature left out": `${head}.${body}.`,
    "the signature cut": `${head}.${body}.${tail.slice(0, -4)}`,
    "a signature of zeros": `${head}.${body}.${Buffer.alloc(256).toString("base64url")}`,
    "another algorithm of the same key": `${encode({ alg: "RS512", kid })}.${body}.${tail}`,
    "RSA-PSS": `${encode({ alg: "PS256", kid })}.${body}.${tail}`,
    "an ECDSA algorithm": `${encode({ alg: "ES256", kid })}.${body}.${Buffer.alloc(64).toString("base64url")}`,
    ...Object.fromEntries(
      ["HS256", "HS384", "HS512"].flatMap((alg) => [
        [`${alg} with the public key in PEM`, signWithSecret(alg, pem)],
        [`${alg} with the public key in PEM, trimmed`, signWithSecret(alg, pem.trim())],
        [`${alg} with the public key in DER`, signWithSecret(alg, publicKey.export({ type: "spki", format: "der" }))],
        [`${alg} with the modulus`, signWithSecret(alg, jwk.n ?? "")],
        [`${alg} with nothing`, signWithSecret(alg, "")],
      ]),
    ),
    "another key with the server's kid": signWith({ alg: "RS256", kid }),
    "an embedded key": signWith({ alg: "RS256", kid, jwk: otherJwk }),
    "an embedded key without kid": signWith({ alg: "RS256", jwk: otherJwk }),
    "a key by URL": signWith({ alg: "RS256", kid, jku: "https://127.0.0.1:1/keys", x5u: "https://127.0.0.1:1/crt" }),
    "an embedded certificate": signWith({ alg: "RS256", kid, x5c: ["MA=="] }),
    ...Object.fromEntries(
      ["", "../../../../dev/null", "/dev/null", "' OR 1=1 --", "__proto__", "toString", "|id", "a\0b", "*"].map(
        (name) => [`a key named ${JSON.stringify(name)}`, signWith({ alg: "RS256", kid: name })],
      ),
    ),
    "a key named by a number": signWith({ alg: "RS256", kid: 0 }),
    "an unknown critical header": `${encode({ alg: "RS256", kid, crit: ["exp"] })}.${body}.${tail}`,
    "a payload that is not encoded": `${encode({ alg: "RS256", kid, b64: false, crit: ["b64"] })}.${body}.${tail}`,
    "another payload": `${head}.${boss}.${tail}`,
    "a header of a prototype": `${Buffer.from(`{"__proto__":{"alg":"RS256","kid":"${kid}"}}`).toString("base64url")}.${body}.${tail}`,
    padding: `${head}=.${body}=.${tail}=`,
    "another alphabet": `${head}.${body}.${tail.replaceAll("-", "+").replaceAll("_", "/")}+`,
    "a fourth part": `${good}.${tail}`,
    encryption: `${encode({ alg: "dir", enc: "A256GCM" })}..${body}.${tail}.${tail}`,
    "two tokens": `${good},${good}`,
    much: "a".repeat(1_000_000),
    "many dots": ".".repeat(50_000),
    "deep JSON": `${Buffer.from("[".repeat(40_000)).toString("base64url")}.${body}.${tail}`,
  };
  for (const [what, token] of Object.entries(forged)) t.equal(await usernameOf(server, token), "401", what);
  t.equal(await usernameOf(server, good), ACCOUNT);
});

t.test("isSignedBy() rejects ECDSA signatures of zeros, of ones and of another length", async (t) => {
  for (const [namedCurve, alg, bytes] of [
    ["P-256", "ES256", 64],
    ["P-384", "ES384", 96],
    ["P-521", "ES512", 132],
  ] as const) {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve });
    for (const signature of [
      Buffer.alloc(bytes),
      Buffer.alloc(bytes, 0xff),
      Buffer.alloc(bytes * 2),
      Buffer.alloc(1),
    ]) {
      const jws = parseJws(`${encode({ alg })}.${encode({})}.${signature.toString("base64url")}`);
      t.equal(jws !== undefined && isSignedBy(jws, publicKey), false, `${alg}, ${signature.length} bytes`);
    }
  }
});
