import t from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { type Answers, signerKey as key, signResponse, startFakeSigner } from "../../testing/auth/fake-signer.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { openExternalSigner, type SignerObserver } from "./external-signer.ts";
import { isSignedBy, parseJws } from "./jws.ts";

const ISSUER = "https://ids.example.com";
const claims = {
  id: "1",
  audiences: ["a"],
  now: 1,
  expires: 2,
  namespace: "shop",
  account: { name: "till", uid: "7" },
};

t.test("openExternalSigner() signs tokens and returns the keys", async (t) => {
  using opened = await openExternalSigner(await startFakeSigner(t, {}), ISSUER, systemClock);
  t.equal(opened.maxTokenSeconds, 7200);
  const jws = parseJws(await opened.issuer.issue(claims));
  t.match(jws?.payload, { iss: ISSUER, sub: "system:serviceaccount:shop:till" });
  const [known] = await opened.verificationKeys("k1");
  t.ok(jws !== undefined && known !== undefined && isSignedBy(jws, known.publicKey));
  t.same(
    (await opened.publishedKeys()).map(({ keyId }) => keyId),
    ["k1"],
  );
});

t.test("openExternalSigner() observes the result of each call", async (t) => {
  const calls: string[] = [];
  const dates: number[] = [];
  const observe: SignerObserver = {
    called: (method, code) => void calls.push(`${method} ${code}`),
    keysFetched: (seconds) => void dates.push(seconds),
  };
  using opened = await openExternalSigner(await startFakeSigner(t, {}), ISSUER, systemClock, observe);
  await opened.issuer.issue(claims);
  const methods = ["Metadata", "FetchKeys", "Sign"];
  t.same(
    calls,
    methods.map((method) => `/v1alpha1.ExternalJWTSigner/${method} OK`),
  );
  t.same(dates, [1_700_000_000]);
  await t.rejects(openExternalSigner("/tmp/nowhere/missing", ISSUER, systemClock, observe));
  t.equal(calls.at(-1), "/v1alpha1.ExternalJWTSigner/Metadata Unavailable");
});

t.test("openExternalSigner() refreshes keys on time and changes the version", async (t) => {
  const clock = new FakeClock();
  let keyId = "k1";
  const FetchKeys = () => ({ keys: [{ keyId, key }], refreshHintSeconds: 60 });
  using opened = await openExternalSigner(await startFakeSigner(t, { FetchKeys }), ISSUER, clock);
  const version = opened.version();
  keyId = "k2";
  t.equal(opened.version(), version, "before the refresh is due");
  await clock.advance(60_000);
  opened.version();
  t.match(await opened.verificationKeys("k2"), [{ keyId: "k2" }]);
  t.not(opened.version(), version);
});

t.test("openExternalSigner() rejects a signer with invalid metadata or keys", async (t) => {
  for (const [answers, message] of [
    [
      { Metadata: () => ({ maxTokenExpirationSeconds: 599 }) },
      /maximum token expiration is 599 seconds: it must be at least 600/,
    ],
    [{ FetchKeys: () => ({ keys: [{ keyId: "k1", key }] }) }, /refreshHintSeconds/],
    [{ FetchKeys: () => ({ refreshHintSeconds: 1 }) }, /it has no keys/],
    [{ FetchKeys: () => ({ keys: [{ key }], refreshHintSeconds: 1 }) }, /a key has no identifier/],
  ] as const) {
    await t.rejects(openExternalSigner(await startFakeSigner(t, answers), ISSUER, systemClock), { message });
  }
  const nowhere = "/tmp/nowhere/missing";
  await t.rejects(openExternalSigner(nowhere, ISSUER, systemClock), { message: /Cannot use the signer at .*missing/ });
});

t.test("openExternalSigner() rejects signed tokens that verifiers would not accept", async (t) => {
  for (const [header, message] of [
    [{ alg: "none", kid: "k1", typ: "JWT" }, /names the algorithm "none"/],
    [{ alg: "ES256", typ: "JWT" }, /has no key ID/],
    [{ alg: "ES256", kid: "k1" }, /is not of type JWT/],
    [{ alg: "ES256", kid: "k1", typ: "JWT", jku: "x" }, /unknown members: jku/],
    [{ alg: "ES256", kid: "old", typ: "JWT" }, /"old", which is not published/],
  ] as const) {
    const Sign: Answers["Sign"] = ({ claims = "" }) => signResponse(header, claims);
    using opened = await openExternalSigner(await startFakeSigner(t, { Sign }), ISSUER, systemClock);
    await t.rejects(opened.issuer.issue(claims), { message });
  }
});
