import t from "tap";
import { CLIENT_AUTH, makeCertificate } from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { requestHeaderAuthenticator } from "./request-header.ts";

const ca = await makeCertificate({ subject: [{ CN: ["proxies"] }], authority: {} });
const front = await makeCertificate({ subject: [{ CN: ["front"] }], issuer: ca, usages: [CLIENT_AUTH] });
const side = await makeCertificate({ subject: [{ CN: ["side"] }], issuer: ca, usages: [CLIENT_AUTH] });

t.test("requestHeaderAuthenticator() believes headers of proxies that are named, and of nobody else", async (t) => {
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
  const ask = (certificates: readonly Uint8Array[], sent = headers) =>
    authenticate({ certificates, headerValues: (name) => sent[name] ?? [], headerNames: () => Object.keys(sent) });
  const found = {
    name: "jo, ann",
    uid: "",
    groups: ["a", "ü, system:masters"],
    extra: { "a/b": ["1", "2"], "%": ["3"] },
  };
  t.same(await ask([front.der]), found);
  t.equal(await ask([]), undefined, "without a certificate");
  t.equal(await ask([front.der], {}), undefined, "without a name");
  await t.rejects(async () => ask([side.der]), { message: 'x509: subject with cn="side" is not in the allowed list' });
});
