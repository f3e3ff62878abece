import t from "tap";
import { CLIENT_AUTH, makeCertificate } from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { requestHeaderAuthenticator } from "./request-header.ts";

const ca = await makeCertificate({ subject: [{ CN: ["proxies"] }], authority: {} });
const front = await makeCertificate({ subject: [{ CN: ["front"] }], issuer: ca, usages: [CLIENT_AUTH] });
const side = await makeCertificate({ subject: [{ CN: ["side"] }], issuer: ca, usages: [CLIENT_AUTH] });

t.test("requestHeaderAuthenticator() accepts headers only from proxies with an allowed common name", async (t) => {
  const { authenticate } = requestHeaderAuthenticator({
    caPem: ca.cert,
    clock: new FakeClock(Date.parse("2026-01-01T00:00:00Z")),
    allowedNames: ["front"],
    names: { usernames: ["X-User"], groups: ["X-Group"], uids: ["X-Uid"], extraPrefixes: ["X-Extra-"] },
  });
  const headers: Readonly<Record<string, readonly string[]>> = {
    "x-user": ["jo, ann", "later"],
    "x-group": ["a", "", "ü, system:masters"],
    "x-extra-a%2fb": ["1", "2"],
    "x-extra-%": ["3"],
  };
  const authenticateWith = (certificates: readonly Uint8Array[], sent = headers) =>
    authenticate({ certificates, headerValues: (name) => sent[name] ?? [], headerNames: () => Object.keys(sent) });
  const found = {
    name: "jo, ann",
    uid: "",
    groups: ["a", "ü, system:masters"],
    extra: { "a/b": ["1", "2"], "%": ["3"] },
  };
  t.same(await authenticateWith([front.der]), found);
  t.equal(await authenticateWith([]), undefined, "without a certificate");
  t.equal(await authenticateWith([front.der], {}), undefined, "without a name");
  await t.rejects(async () => authenticateWith([side.der]), {
    message: 'x509: subject with cn="side" is not in the allowed list',
  });
});
