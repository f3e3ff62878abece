import t from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { makeQuery } from "../../testing/dns/queries.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { ClusterRecords } from "../records/cluster-records.ts";
import { ClusterZone } from "../records/cluster-zone.ts";
import { rcode } from "../wire/constants.ts";
import { createDnsMetrics } from "./dns-metrics.ts";
import { createRequestHandler } from "./request-handler.ts";

t.test("a query whose answer cannot be built gets SERVFAIL, as an exception would end the process", async (t) => {
  const errors: unknown[] = [];
  let hasRecords = false;
  const handle = createRequestHandler({
    zone: new ClusterZone({ domain: "cluster.local", addresses: ["10.3.0.10"] }),
    records: () => {
      if (!hasRecords) throw new Error("no records");
      return new ClusterRecords();
    },
    forwarder: { forward: () => Promise.reject(new Error("no servers")) },
    metrics: createDnsMetrics(new MetricRegistry()),
    clock: new FakeClock(),
    onError: (error) => errors.push(error),
  });
  for (const name of ["a.default.svc.cluster.local", "a.example"]) {
    const response = await handle(makeQuery(name), { address: "10.1.0.1", protocol: "udp" });
    t.equal(response!.readUInt16BE(2) & 0xf, rcode.serverFailure, name);
    hasRecords = true;
  }
  t.same(errors.map(String), ["Error: no records", "Error: no servers"]);
});
