import t from "tap";
import {
  CLIENT_AUTH,
  makeCertificate,
  SERVER_AUTH,
  type TestCertificate,
  type TestCertificateOptions,
  withoutExtensions,
} from "../../../testing/http/test-certificates.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { x509Authenticator } from "./x509.ts";

const UNAUTHORIZED = { name: "StatusError" };
const NOW = Date.UTC(2026, 0, 1);
const ca = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });
const otherCa = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });

function leaf(options: Partial<TestCertificateOptions> = {}): Promise<TestCertificate> {
  return makeCertificate({ subject: [{ CN: ["me"] }], issuer: ca, usages: [CLIENT_AUTH], ...options });
}

async function verify(...chain: readonly TestCertificate[]) {
  const { authenticate } = x509Authenticator({ caPem: ca.cert, clock: new FakeClock(NOW) });
  return authenticate({ certificates: chain.map((certificate) => certificate.der) });
}

t.test("x509Authenticator() reads user, groups and uid from the subject", async (t) => {
  const subject = [{ O: ["first"] }, { CN: ["me"] }, { O: ["second"] }, { "1.3.6.1.4.1.57683.2": ["uid-1"] }];
  const user = await verify(await leaf({ subject }));
  t.match(user, { name: "me", uid: "uid-1", groups: ["first", "second"] });
  t.match(user?.extra["authentication.kubernetes.io/credential-id"]?.[0], /^X509SHA256=[0-9a-f]{64}$/);
  t.equal(await verify(), undefined);
});

t.test("x509Authenticator() does not split names that look like several attributes", async (t) => {
  const names = ["me\nO=system:masters", "me, O=system:masters", "CN=me+O=system:masters", "system:masters"];
  for (const name of names) {
    const user = await verify(await leaf({ subject: [{ CN: [name] }] }));
    t.strictSame([user?.name, user?.groups], [name, []], JSON.stringify(name));
  }
});

t.test(
  "x509Authenticator() rejects certificates that are not valid client certificates of the authority",
  async (t) => {
    const expired = { notAfter: new Date("2025-12-31T00:00:00Z") };
    const early = { notBefore: new Date("2026-01-02T00:00:00Z") };
    const noAuthority = await leaf();
    const bad: Readonly<Record<string, readonly TestCertificate[]>> = {
      "signed by another authority of the same name": [await leaf({ issuer: otherCa })],
      "self-signed": [await makeCertificate({ subject: [{ CN: ["me"] }], usages: [CLIENT_AUTH] })],
      expired: [await leaf(expired)],
      "not valid yet": [await leaf(early)],
      "for servers only": [await leaf({ usages: [SERVER_AUTH] })],
      "without a common name": [await leaf({ subject: [{ O: ["system:masters"] }] })],
      "with an empty common name": [await leaf({ subject: [{ CN: [""] }] })],
      "with an unknown critical extension": [await leaf({ critical: "1.2.3.4" })],
      "signed by a certificate that is not an authority": [await leaf({ issuer: noAuthority }), noAuthority],
      "with its authority's name constrained": [
        ...(await (async () => {
          const constrained = await makeCertificate({
            subject: [{ CN: ["c"] }],
            issuer: ca,
            authority: {},
            critical: "2.5.29.30",
          });
          return [await leaf({ issuer: constrained }), constrained];
        })()),
      ],
    };
    for (const [what, chain] of Object.entries(bad)) {
      await t.rejects(verify(...chain), UNAUTHORIZED, what);
    }
    const { authenticate } = x509Authenticator({ caPem: ca.cert, clock: new FakeClock(NOW) });
    const good = (await leaf()).der;
    const cut = [
      Buffer.from("garbage"),
      Buffer.alloc(0),
      good.subarray(0, good.length - 1),
      Buffer.alloc(1_000_000, 0x30),
    ];
    for (const certificate of cut)
      await t.rejects(async () => authenticate({ certificates: [certificate] }), UNAUTHORIZED);
  },
);

t.test("x509Authenticator() accepts a certificate for any usage, and one without extended key usage", async (t) => {
  t.equal((await verify(await leaf({ usages: ["2.5.29.37.0"] })))?.name, "me");
  const { usages: _, ...without } = { subject: [{ CN: ["me"] }], issuer: ca, usages: [] };
  t.equal((await verify(await makeCertificate(without)))?.name, "me");
});

t.test("x509Authenticator() verifies chains over intermediates, up to their path length", async (t) => {
  const free = await makeCertificate({ subject: [{ CN: ["free"] }], issuer: ca, authority: {} });
  const last = await makeCertificate({ subject: [{ CN: ["last"] }], issuer: free, authority: { pathLength: 0 } });
  const beyond = await makeCertificate({ subject: [{ CN: ["beyond"] }], issuer: last, authority: {} });
  const old = await makeCertificate({
    subject: [{ CN: ["old"] }],
    issuer: ca,
    authority: {},
    notAfter: new Date("2025-01-01T00:00:00Z"),
  });
  const serverOnly = await makeCertificate({
    subject: [{ CN: ["s"] }],
    issuer: ca,
    authority: {},
    usages: [SERVER_AUTH],
  });
  t.equal((await verify(await leaf({ issuer: last }), last, free))?.name, "me");
  t.equal((await verify(await leaf({ issuer: last }), free, last))?.name, "me", "in any order");
  await t.rejects(verify(await leaf({ issuer: last }), last), UNAUTHORIZED, "one is missing");
  await t.rejects(verify(await leaf({ issuer: beyond }), beyond, last, free), UNAUTHORIZED, "one too deep");
  await t.rejects(verify(await leaf({ issuer: old }), old), UNAUTHORIZED, "expired");
  await t.rejects(verify(await leaf({ issuer: serverOnly }), serverOnly), UNAUTHORIZED, "for servers");
});

t.test("x509Authenticator() terminates for authorities that sign each other", async (t) => {
  const one = await makeCertificate({ subject: [{ CN: ["one"] }], authority: {} });
  const two = await makeCertificate({ subject: [{ CN: ["two"] }], issuer: one, authority: {} });
  const loop = await makeCertificate({ subject: [{ CN: ["one"] }], issuer: two, authority: {} });
  const chain = [
    await leaf({ issuer: two }),
    ...Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? two : loop)),
  ];
  await t.rejects(verify(...chain), UNAUTHORIZED);
});

t.test("x509Authenticator() caches rejections until the validity of a certificate changes", async (t) => {
  const clock = new FakeClock(NOW);
  const left: number[] = [];
  const observeRemaining = (milliseconds: number): void => void left.push(milliseconds);
  const { authenticate } = x509Authenticator({ caPem: ca.cert, clock, observeRemaining });
  const certificates = [(await leaf({ notBefore: new Date(NOW + 60_000), notAfter: new Date(NOW + 120_000) })).der];
  const why = async (): Promise<unknown> => {
    try {
      return await authenticate({ certificates });
    } catch (error) {
      return error;
    }
  };
  const early = await why();
  t.match(early, UNAUTHORIZED);
  t.equal(await why(), early, "the cached error");
  await clock.advance(60_000);
  t.match(await why(), { name: "me" });
  await clock.advance(60_000);
  t.match(await why(), { name: "me" }, "to its last moment");
  await clock.advance(1000);
  const late = await why();
  t.match(late, UNAUTHORIZED);
  t.not(late, early);
  t.same(left, [120_000, 120_000, 60_000, 0, -1000], "the remaining validity is observed for each request");
});

t.test(
  "x509Authenticator() checks the validity for each request, and verifies again after a change of the bundle",
  async (t) => {
    const clock = new FakeClock(NOW);
    const authenticator = x509Authenticator({ caPem: otherCa.cert + ca.cert, clock });
    const certificates = [(await leaf({ notAfter: new Date(NOW + 60_000) })).der];
    t.equal((await authenticator.authenticate({ certificates }))?.name, "me");
    t.equal(
      await authenticator.authenticate({ certificates }),
      await authenticator.authenticate({ certificates }),
      "kept",
    );
    await clock.advance(61_000);
    await t.rejects(async () => authenticator.authenticate({ certificates }), UNAUTHORIZED);
    const fresh = [(await leaf()).der];
    t.equal((await authenticator.authenticate({ certificates: fresh }))?.name, "me");
    t.throws(() => authenticator.setAuthorities("nothing"), { message: /no PEM certificate/ });
    t.equal((await authenticator.authenticate({ certificates: fresh }))?.name, "me", "a bad bundle changes nothing");
    authenticator.setAuthorities(otherCa.cert);
    await t.rejects(async () => authenticator.authenticate({ certificates: fresh }), UNAUTHORIZED);
  },
);

t.test("x509Authenticator() accepts a trusted authority of version 1, which cannot have extensions", async (t) => {
  const client = await leaf();
  const authenticateWith = (root: TestCertificate, ...chain: readonly TestCertificate[]) => {
    const { authenticate } = x509Authenticator({ caPem: root.cert, clock: new FakeClock(NOW) });
    return authenticate({ certificates: chain.map(({ der }) => der) });
  };
  t.equal((await authenticateWith(withoutExtensions(ca, { version: 1 }), client))?.name, "me");
  await t.rejects(
    async () => await authenticateWith(withoutExtensions(otherCa, { version: 1 }), client),
    UNAUTHORIZED,
    "with another key",
  );
  await t.rejects(
    async () => await authenticateWith(withoutExtensions(ca, { version: 3 }), client),
    UNAUTHORIZED,
    "of version 3 without basic constraints",
  );
  const middle = await makeCertificate({ subject: [{ CN: ["middle"] }], issuer: ca, authority: {} });
  const below = await leaf({ issuer: middle });
  t.equal((await authenticateWith(withoutExtensions(ca, { version: 1 }), below, middle))?.name, "me");
  const old = withoutExtensions(middle, { version: 1, issuer: ca });
  await t.rejects(async () => await authenticateWith(ca, below, old), UNAUTHORIZED, "as an intermediate");
});
