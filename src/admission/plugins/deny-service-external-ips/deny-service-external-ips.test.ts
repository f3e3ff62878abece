import t from "tap";
import { serviceKind } from "../../../api/core/service/kind.ts";
import { rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { denyServiceExternalIPs } from "./deny-service-external-ips.ts";

t.test("denyServiceExternalIPs() allows existing external IPs and rejects new ones", async (t) => {
  const service = (...externalIPs: readonly string[]) => ({ metadata: { name: "s" }, spec: { externalIPs } }) as never;
  const plugin = denyServiceExternalIPs();
  const why = 'services "s" is forbidden: Use of external IPs is denied by admission control';
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service("192.0.2.1"))), why);
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service())), "");
  const oldObject = service("192.0.2.1", "192.0.2.2");
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service("192.0.2.2"), { oldObject })), "");
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service("192.0.2.3"), { oldObject })), why);
});
