import t from "tap";
import { proxyService, proxySlice } from "../testing/proxy/objects.ts";
import { deleteStaleFlows, findChangedTargets, findStaleFlow } from "./conntrack.ts";
import { readSlice } from "./endpoints.ts";
import { computeFrontends, type ServiceFrontends } from "./frontends.ts";

const context = { name: "n1", zone: undefined, addresses: ["192.0.2.1"] };

function dns(protocol: "UDP" | "TCP", ...endpoints: readonly string[]): ServiceFrontends {
  const service = proxyService("dns", { clusterIP: "10.96.0.10", ports: [{ port: 53, protocol }] });
  const slice = readSlice(proxySlice("dns", endpoints, { protocol, port: 5353 }));
  return computeFrontends(service, slice === undefined ? [] : [slice], "IPv4", context);
}

const key = "10.96.0.10 53";

t.test("findChangedTargets() lists new frontends of UDP and those that lost endpoints", async (t) => {
  const changes = (before: ServiceFrontends | undefined, after: ServiceFrontends | undefined) =>
    Object.fromEntries([...findChangedTargets(before, after)].map(([frontend, set]) => [frontend, [...set]]));
  const [one, two] = [dns("UDP", "10.1.0.1"), dns("UDP", "10.1.0.1", "10.1.0.2")];
  t.same(changes(undefined, one), { [key]: ["10.1.0.1 5353"] });
  t.same(changes(one, two), {}, "another endpoint makes no flow stale");
  t.same(changes(two, one), { [key]: ["10.1.0.1 5353"] });
  t.same(changes(one, undefined), { [key]: [] });
  t.same(changes(undefined, dns("TCP", "10.1.0.1")), {});
});

t.test("findStaleFlow() reads lines of conntrack", async (t) => {
  const targets = new Map([[key, new Set(["10.1.0.1 5353"])]]);
  const line = (endpoint: string, port: number): string =>
    `udp      17 29 src=10.1.0.7 dst=10.96.0.10 sport=4000 dport=53 [UNREPLIED] ` +
    `src=${endpoint} dst=10.1.0.7 sport=${port} dport=4000 mark=0 use=1`;
  const flow = { source: "10.1.0.7", sourcePort: "4000", destination: "10.96.0.10", destinationPort: "53" };
  t.same(findStaleFlow(line("10.1.0.2", 5353), targets), flow, "to an endpoint that is gone");
  t.same(findStaleFlow(line("10.96.0.10", 53), targets), flow, "to no endpoint");
  t.equal(findStaleFlow(line("10.1.0.1", 5353), targets), undefined);
  t.equal(findStaleFlow(line("10.1.0.2", 5353), new Map()), undefined, "of no frontend");
  t.equal(findStaleFlow("conntrack v1.4.7: 3 flow entries have been shown.", targets), undefined);
});

t.test("deleteStaleFlows() rejects when the program does not work", async (t) => {
  const targets = new Map([[key, new Set<string>()]]);
  await t.rejects(deleteStaleFlows("/nowhere/conntrack", "IPv4", targets), /Cannot run/);
  await t.rejects(deleteStaleFlows("false", "IPv4", targets), /failed \(1\)/);
  t.equal(await deleteStaleFlows("true", "IPv4", targets), 0);
  t.equal(await deleteStaleFlows("/nowhere/conntrack", "IPv6", targets), undefined, "no frontend of the family");
});
