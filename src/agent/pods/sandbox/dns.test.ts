import t from "tap";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { hostnameOf, makeHostsFile, makeKernelHostname, makePodDns, parseResolvConf } from "./dns.ts";

const settings = {
  clusterDns: ["10.96.0.10"],
  clusterDomain: "cluster.local",
  resolvConf: "# mine\nnameserver 203.0.113.53\nsearch node.example.\noptions ndots:2 timeout:1\n",
};
const dns = (spec: Partial<PodSpec>, extra = {}) => makePodDns(testPod("web", spec), { ...settings, ...extra });

t.test("makePodDns() follows the pod's dnsPolicy", async (t) => {
  const searches = ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "node.example"];
  t.same(dns({}).config, { servers: ["10.96.0.10"], searches, options: ["ndots:5"] });
  const host = { servers: ["203.0.113.53"], searches: ["node.example"], options: ["ndots:2", "timeout:1"] };
  t.same(dns({ dnsPolicy: "Default" }).config, host);
  t.same(dns({ hostNetwork: true }).config, host, "ClusterFirst on the host's network is the host's");
  t.same(dns({ hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" }).config.servers, ["10.96.0.10"]);
  t.same(dns({ dnsPolicy: "None" }).config, { servers: [], searches: [], options: [] });
});

t.test("makePodDns() directs pods to themselves when the node has no resolver file", async (t) => {
  const none = { resolvConf: "", ownAddresses: ["192.0.2.1", "2001:db8::1"] };
  const own = { servers: ["127.0.0.1", "::1"], searches: ["."], options: [] };
  t.same(dns({ dnsPolicy: "Default" }, none).config, own);
  t.same(dns({}, { ...none, clusterDns: [] }).config, own);
  t.same(dns({}, none).config.searches, ["default.svc.cluster.local", "svc.cluster.local", "cluster.local"]);
});

t.test("makePodDns() merges dnsConfig: options override, search paths are unique", async (t) => {
  const dnsConfig = {
    nameservers: ["203.0.113.1", "10.96.0.10"],
    searches: ["svc.cluster.local", "x.example"],
    options: [{ name: "ndots", value: "7" }, { name: "edns0" }],
  };
  t.same(dns({ dnsConfig }).config, {
    servers: ["10.96.0.10", "203.0.113.1"],
    searches: ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "node.example", "x.example"],
    options: ["ndots:7", "edns0"],
  });
});

t.test("makePodDns() omits nameservers after the third, with a warning", async (t) => {
  const { config, warnings } = dns({ dnsConfig: { nameservers: ["203.0.113.1", "203.0.113.2", "203.0.113.3"] } });
  t.same(config.servers, ["10.96.0.10", "203.0.113.1", "203.0.113.2"]);
  t.equal(
    warnings[0]?.message,
    "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: " +
      "10.96.0.10 203.0.113.1 203.0.113.2",
  );
});

t.test("makePodDns() omits a search path that is too long for resolvers, with a warning", async (t) => {
  const searches = [`${"a.".repeat(130)}example`, "x.example"];
  const { config, warnings } = dns({ dnsPolicy: "None", dnsConfig: { nameservers: ["203.0.113.1"], searches } });
  t.same(config.searches, ["x.example"]);
  t.same(
    warnings.map(({ reason }) => reason),
    ["DNSConfigForming"],
  );
});

t.test("makePodDns() falls back to the node's resolver without a cluster DNS, with a warning", async (t) => {
  const { config, warnings } = dns({}, { clusterDns: [] });
  t.same(config.servers, ["203.0.113.53"]);
  t.equal(warnings[0]?.reason, "MissingClusterDNS");
  t.equal(warnings[0]?.message, `pod: "web_default(uid-web)". ${warnings[0]?.nodeMessage}`);
  const onHost = dns({ dnsPolicy: "ClusterFirstWithHostNet", hostNetwork: true }, { clusterDns: [] });
  t.equal(onHost.warnings[0]?.message, warnings[0]?.message, "as in Kubernetes");
});

t.test("hostnameOf() truncates to 63 characters without a trailing dash", async (t) => {
  const name = `${"a".repeat(62)}-bcd`;
  t.equal(hostnameOf(testPod(name), "cluster.local").hostname, "a".repeat(62));
  t.same(hostnameOf(testPod("web", { hostname: "h1", subdomain: "sub" }), "cluster.local"), {
    hostname: "h1",
    domain: "sub.default.svc.cluster.local",
  });
});

t.test("makeHostsFile() contains the pod and its hostAliases", async (t) => {
  const pod = testPod("web", { hostAliases: [{ ip: "203.0.113.7", hostnames: ["a.test", "b.test"] }] });
  const text = makeHostsFile(pod, "cluster.local", ["10.0.0.2"], "");
  t.match(text, /^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n/);
  t.match(text, /\n10\.0\.0\.2\tweb\n\n# Entries added by HostAliases\.\n203\.0\.113\.7\ta\.test\tb\.test\n$/);
});

t.test("parseResolvConf() returns an empty configuration for an empty or invalid file", async (t) => {
  t.same(parseResolvConf(""), { servers: [], searches: [], options: [] });
  t.same(parseResolvConf("nameserver\nnonsense\n"), { servers: [], searches: [], options: [] });
});

t.test("parseResolvConf() returns the options of all lines, the last value of each", async (t) => {
  const { options, searches } = parseResolvConf("options ndots:2 rotate\nsearch a.\nsearch b. .\noptions ndots:3\n");
  t.same(options, ["ndots:3", "rotate"]);
  t.same(searches, ["b", "."]);
});

t.test(
  "makeKernelHostname() returns the FQDN if the pod sets setHostnameAsFQDN, and throws if it is too long",
  async (t) => {
    const named = (name: string, spec: Partial<PodSpec>) => makeKernelHostname(testPod(name, spec), "cluster.local");
    const spec = { subdomain: "sub", setHostnameAsFQDN: true };
    t.equal(named("web", spec), "web.sub.default.svc.cluster.local");
    t.equal(named("web", { subdomain: "sub" }), "web");
    t.equal(named("web", { setHostnameAsFQDN: true }), "web", "without a subdomain there is no other name");
    const fits = "a".repeat(64 - ".sub.default.svc.cluster.local".length);
    t.equal(named(fits, spec).length, 64);
    t.throws(() => named(`${fits}a`, spec), {
      message:
        "failed to construct FQDN from pod hostname and cluster domain, FQDN " +
        `${fits}a.sub.default.svc.cluster.local is too long (64 characters is the max, 65 characters requested)`,
    });
  },
);
