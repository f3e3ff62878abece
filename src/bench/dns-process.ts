/** The DNS server of a node in a process of its own, with objects in place of a cluster. Prints its port. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serviceKind } from "../api/core/service/kind.ts";
import { endpointSliceKind } from "../api/discovery/endpoint-slice/kind.ts";
import { startDnsServer } from "../dns/dns-server.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { systemClock } from "../std/time/clock.ts";
import { FakeInformers } from "../testing/client/fake-informers.ts";

const [services = "1000", upstreamPort = "0"] = process.argv.slice(2);
const ENDPOINTS = 10;

const directory = mkdtempSync(join(tmpdir(), "svc-bench-dns-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const informers = new FakeInformers();
for (let i = 0; i < Number(services); i++) {
  const [namespace, name] = [`ns-${i % 50}`, `service-${i}`];
  const clusterIP = i % 10 === 0 ? "None" : `10.96.${i >> 8}.${i & 255}`;
  informers.put(serviceKind, {
    metadata: { namespace, name },
    spec: { clusterIP, clusterIPs: [clusterIP], ports: [{ name: "http", port: 80 }] },
  });
  informers.put(endpointSliceKind, {
    metadata: { namespace, name: `${name}-1`, labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    endpoints: Array.from({ length: ENDPOINTS }, (_, n) => ({ addresses: [`10.244.${i & 255}.${n}`] })),
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  });
}
informers.of(serviceKind);
informers.of(endpointSliceKind);
const server = await startDnsServer({
  addresses: ["127.0.0.1"],
  port: 0,
  domain: "cluster.local",
  rules: [{ domain: "", server: { address: "127.0.0.1", port: Number(upstreamPort) } }],
  readResolvers: async () => [],
  informers,
  recordsFile: join(directory, "records"),
  metrics: new MetricRegistry(),
  clock: systemClock,
  random: systemRandom,
  log: silentLogger,
  onProblem: (text) => console.error(text),
});
informers.sync();
console.log(server.port);
process.on("SIGTERM", () => void server.close({ removeAddresses: false }).then(() => process.exit(0)));
