import t from "tap";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { ensureDnsService } from "./dns-service.ts";

const SERVICE = { namespace: "kube-system", name: "kube-dns" };

t.test("ensureDnsService() reserves the address, and replaces its service when the address changes", async (t) => {
  const client = await startInMemoryCluster(t);
  const warnings: string[] = [];
  const log = { ...silentLogger, warn: (text: string) => void warnings.push(text) };
  await client.create(namespaceKind, { metadata: { name: "kube-system" } }).catch(() => undefined);
  const find = async () => await client.get(serviceKind, SERVICE);
  for (const address of ["10.0.0.10", "10.0.0.10", "10.0.0.11"]) {
    await ensureDnsService(client, address, log);
    t.match(await find(), { spec: { clusterIP: address, ports: [{ protocol: "UDP" }, { protocol: "TCP" }] } });
  }
  await ensureDnsService(client, "192.0.2.1", log);
  t.match(warnings, [/^Cannot reserve the address/]);
});

t.test("ensureDnsService() leaves a service of the same name alone", async (t) => {
  const client = await startInMemoryCluster(t);
  await client.create(namespaceKind, { metadata: { name: "kube-system" } }).catch(() => undefined);
  const ports = [{ port: 53 }];
  const other = await client.create(serviceKind, { metadata: SERVICE, spec: { clusterIP: "10.0.0.10", ports } });
  await ensureDnsService(client, "10.0.0.11", silentLogger);
  t.same(await client.get(serviceKind, SERVICE), other);
});
