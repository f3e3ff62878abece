import t from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { rootOf } from "./serving-ca.ts";

t.test("rootOf() finds the CA of the serving certificate", async (t) => {
  const now = Date.now();
  const [ca, other] = [await createCa("one", 10, now), await createCa("two", 10, now)];
  const leaf = await issueCertificate(ca, { commonName: "x", usages: ["server"], days: 1 }, now);
  t.equal(rootOf(leaf.cert + ca.cert, ""), ca.cert, "the CA follows the certificate");
  t.equal(rootOf(leaf.cert, other.cert + ca.cert), ca.cert, "the CA is among the known ones");
  t.equal(rootOf(leaf.cert, other.cert), undefined);
  t.equal(rootOf(ca.cert, other.cert), ca.cert, "a self-signed certificate");
  t.equal(rootOf("", ca.cert), undefined);
  t.equal(rootOf("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", ca.cert), undefined);
});
