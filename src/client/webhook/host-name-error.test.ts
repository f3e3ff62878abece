import t from "tap";
import { hostNameErrorText } from "./host-name-error.ts";

t.test("hostNameErrorText() names the names of the certificate that are of the kind of the host", (t) => {
  const text = (subjectaltname: string | undefined, host: string, commonName = "x"): string =>
    hostNameErrorText({ subject: { CN: commonName } as never, subjectaltname }, host);
  const mixed = "DNS:a.example, DNS:b.example, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1, URI:spiffe://a";
  t.equal(text(mixed, "web.default.svc"), "certificate is valid for a.example, b.example, not web.default.svc");
  t.equal(text(mixed, "192.0.2.9"), "certificate is valid for 192.0.2.1, 2001:db8::1, not 192.0.2.9");
  const none = "certificate is not valid for any names, but wanted to match web.default.svc";
  t.equal(text("IP Address:192.0.2.1", "web.default.svc"), none);
  t.equal(text(undefined, "web.default.svc"), none);
  t.equal(hostNameErrorText(undefined, "web.default.svc"), none);
  const noAddress = "cannot validate certificate for 192.0.2.9 because it doesn't contain any IP SANs";
  t.equal(text("DNS:a.example", "192.0.2.9"), noAddress);
  const legacy = "certificate relies on legacy Common Name field, use SANs instead";
  t.equal(text(undefined, "Web.default.svc", "web.Default.svc"), legacy);
  t.end();
});
