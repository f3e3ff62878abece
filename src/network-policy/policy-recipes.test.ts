/**
 * The scenarios of Kubernetes' end-to-end tests of network policies (sig-network, netpol), and recipes that users take:
 * policies and pods in, which packets the rules pass out. Every step is applied as a transaction of its own.
 */
import t from "tap";
import type { NetworkPolicyPeer, NetworkPolicySpec } from "../api/networking/network-policy/schema.ts";
import { type Attempt, PolicyCluster } from "../testing/network-policy/policy-cluster.ts";

const pod = (name: string) => ({ matchLabels: { pod: name } });
const ns = (name: string) => ({ matchLabels: { ns: name } });
const nsIn = (...names: readonly string[]) => ({ matchExpressions: [{ key: "ns", operator: "In", values: names }] });
const podIn = (...names: readonly string[]) => ({ matchExpressions: [{ key: "pod", operator: "In", values: names }] });
const port = (value: number | string, protocol: "TCP" | "UDP" | "SCTP" = "TCP", endPort?: number) => ({
  port: value,
  protocol,
  ...(endPort === undefined ? {} : { endPort }),
});
const ingress = (podSelector: NetworkPolicySpec["podSelector"], ...rules: NetworkPolicySpec["ingress"] & object) =>
  ({ podSelector, ingress: rules, policyTypes: ["Ingress"] }) as const;
const egress = (podSelector: NetworkPolicySpec["podSelector"], ...rules: NetworkPolicySpec["egress"] & object) =>
  ({ podSelector, egress: rules, policyTypes: ["Egress"] }) as const;
const fromPeers = (...from: readonly NetworkPolicyPeer[]) => ({ from });
const toPeers = (...to: readonly NetworkPolicyPeer[]) => ({ to });
const all = {};
const nsOf = (name: string): string => name.slice(0, 1);
const block = (cidr: string, ...except: readonly string[]) => ({ ipBlock: { cidr, except } });
/** Addresses of `PolicyCluster`: 10.1.0.11 and fd00:1::11 are x/a, the last are z/c with 19. */
const single = (index: number): readonly NetworkPolicyPeer[] => [
  block(`10.1.0.${index}/32`),
  block(`fd00:1::${index}/128`),
];

type Expectation = (attempt: Attempt) => boolean;
type Policies = readonly (readonly [namespace: string, spec: NetworkPolicySpec])[];

interface Scenario {
  readonly name: string;
  readonly policies: Policies;
  readonly allows: Expectation;
}

const scenarios: readonly Scenario[] = [
  { name: "no policy: everything passes", policies: [], allows: () => true },
  {
    name: "default-deny-ingress",
    policies: [["x", { podSelector: all, policyTypes: ["Ingress"] }]],
    allows: ({ to }) => nsOf(to) !== "x",
  },
  {
    name: "a policy without types and rules denies ingress",
    policies: [["x", { podSelector: all }]],
    allows: ({ to }) => nsOf(to) !== "x",
  },
  {
    name: "default-deny-all",
    policies: [["x", { podSelector: all, policyTypes: ["Ingress", "Egress"] }]],
    allows: ({ from, to }) => nsOf(to) !== "x" && nsOf(from) !== "x",
  },
  {
    name: "deny all egress of a namespace",
    policies: [["x", { podSelector: all, policyTypes: ["Egress"] }]],
    allows: ({ from }) => nsOf(from) !== "x",
  },
  {
    name: "deny egress of the pods that a selector matches",
    policies: [["x", egress(pod("a"))]],
    allows: ({ from }) => from !== "x/a",
  },
  {
    name: "allow-all ingress isolates without effect",
    policies: [["x", ingress(all, {})]],
    allows: () => true,
  },
  {
    name: "traffic from pods within the server's namespace, by pod selector",
    policies: [["x", ingress(pod("a"), fromPeers({ podSelector: pod("b") }))]],
    allows: ({ from, to }) => to !== "x/a" || from === "x/b",
  },
  {
    name: "ingress for a target, from any pod of the namespace",
    policies: [
      ["x", ingress(all)],
      ["x", ingress(pod("a"), fromPeers({ podSelector: all }))],
    ],
    allows: ({ from, to }) => nsOf(to) !== "x" || (to === "x/a" && nsOf(from) === "x"),
  },
  {
    name: "ingress from pods in all namespaces",
    policies: [
      ["x", ingress(all)],
      ["x", ingress(pod("a"), fromPeers({ namespaceSelector: all }))],
    ],
    allows: ({ to }) => nsOf(to) !== "x" || to === "x/a",
  },
  {
    name: "traffic only from a different namespace, by namespace selector",
    policies: [["x", ingress(pod("a"), fromPeers({ namespaceSelector: ns("y") }))]],
    allows: ({ from, to }) => to !== "x/a" || nsOf(from) === "y",
  },
  {
    name: "a namespace by its name label",
    policies: [
      [
        "x",
        ingress(pod("a"), fromPeers({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "y" } } })),
      ],
    ],
    allows: ({ from, to }) => to !== "x/a" || nsOf(from) === "y",
  },
  {
    name: "a pod selector with expressions",
    policies: [["x", ingress(pod("a"), fromPeers({ podSelector: podIn("b") }))]],
    allows: ({ from, to }) => to !== "x/a" || from === "x/b",
  },
  {
    name: "a namespace selector with expressions",
    policies: [["x", ingress(pod("a"), fromPeers({ namespaceSelector: nsIn("y") }))]],
    allows: ({ from, to }) => to !== "x/a" || nsOf(from) === "y",
  },
  {
    name: "expressions NotIn, Exists and DoesNotExist",
    policies: [
      [
        "x",
        ingress(
          { matchExpressions: [{ key: "pod", operator: "NotIn", values: ["b"] }] },
          fromPeers({
            namespaceSelector: { matchExpressions: [{ key: "ns", operator: "Exists" }] },
            podSelector: {
              matchExpressions: [
                { key: "pod", operator: "NotIn", values: ["a", "b"] },
                { key: "absent", operator: "DoesNotExist" },
              ],
            },
          }),
        ),
      ],
    ],
    allows: ({ from, to }) => nsOf(to) !== "x" || to === "x/b" || from.endsWith("/c"),
  },
  {
    name: "a pod selector or a namespace selector",
    policies: [["x", ingress(pod("a"), fromPeers({ namespaceSelector: ns("y") }, { podSelector: pod("b") }))]],
    allows: ({ from, to }) => to !== "x/a" || nsOf(from) === "y" || from === "x/b",
  },
  {
    name: "a pod selector and a namespace selector",
    policies: [["x", ingress(pod("a"), fromPeers({ namespaceSelector: ns("y"), podSelector: pod("b") }))]],
    allows: ({ from, to }) => to !== "x/a" || from === "y/b",
  },
  {
    name: "several pod selectors and namespace selectors",
    policies: [
      [
        "x",
        ingress(
          pod("a"),
          fromPeers({
            namespaceSelector: { matchExpressions: [{ key: "ns", operator: "NotIn", values: ["x"] }] },
            podSelector: podIn("b", "c"),
          }),
        ),
      ],
    ],
    allows: ({ from, to }) => to !== "x/a" || (nsOf(from) !== "x" && !from.endsWith("/a")),
  },
  {
    name: "any of several pod selectors",
    policies: [["x", ingress(pod("a"), fromPeers({ podSelector: pod("b") }, { podSelector: pod("c") }))]],
    allows: ({ from, to }) => to !== "x/a" || from === "x/b" || from === "x/c",
  },
  {
    name: "one pod of a different namespace",
    policies: [["x", ingress(all, fromPeers({ namespaceSelector: ns("y"), podSelector: pod("a") }))]],
    allows: ({ from, to }) => nsOf(to) !== "x" || from === "y/a",
  },
  {
    name: "a port, from a namespace",
    policies: [["x", ingress(pod("a"), { from: [{ namespaceSelector: ns("y") }], ports: [port(81)] })]],
    allows: ({ from, to, port: number, protocol }) =>
      to !== "x/a" || (nsOf(from) === "y" && number === 81 && protocol === "tcp"),
  },
  {
    name: "a UDP port, from a namespace",
    policies: [["x", ingress(pod("a"), { from: [{ namespaceSelector: ns("y") }], ports: [port(81, "UDP")] })]],
    allows: ({ from, to, port: number, protocol }) =>
      to !== "x/a" || (nsOf(from) === "y" && number === 81 && protocol === "udp"),
  },
  {
    name: "an SCTP port, from a namespace",
    policies: [["x", ingress(pod("a"), { from: [{ namespaceSelector: ns("y") }], ports: [port(81, "SCTP")] })]],
    allows: ({ from, to, port: number, protocol }) =>
      to !== "x/a" || (nsOf(from) === "y" && number === 81 && protocol === "sctp"),
  },
  {
    name: "stacked policies with overlapping pod selectors and different ports",
    policies: [
      ["x", ingress(pod("a"), { from: [{ namespaceSelector: ns("y") }], ports: [port(80)] })],
      ["x", ingress(podIn("a", "b"), { from: [{ namespaceSelector: ns("y") }], ports: [port(81)] })],
    ],
    allows({ from, to, port: number, protocol }) {
      if (to !== "x/a" && to !== "x/b") return true;
      return nsOf(from) === "y" && protocol === "tcp" && (number === 81 || to === "x/a");
    },
  },
  {
    name: "one named port",
    policies: [["x", ingress(all, { ports: [port("serve-80-tcp")] })]],
    allows: ({ to, port: number, protocol }) => nsOf(to) !== "x" || (number === 80 && protocol === "tcp"),
  },
  {
    name: "one named port from a namespace",
    policies: [["x", ingress(all, { from: [{ namespaceSelector: ns("y") }], ports: [port("serve-80-tcp")] })]],
    allows: ({ from, to, port: number, protocol }) =>
      nsOf(to) !== "x" || (nsOf(from) === "y" && number === 80 && protocol === "tcp"),
  },
  {
    name: "one named port that pods are sent to",
    policies: [["x", egress(pod("a"), { ports: [port("serve-80-tcp")] })]],
    allows: ({ from, port: number, protocol }) => from !== "x/a" || (number === 80 && protocol === "tcp"),
  },
  {
    name: "a named port of another protocol is none",
    policies: [["x", ingress(all, { ports: [port("serve-80-tcp", "UDP")] })]],
    allows: ({ to }) => nsOf(to) !== "x",
  },
  {
    name: "ingress and egress in one policy",
    policies: [
      [
        "x",
        {
          podSelector: pod("a"),
          policyTypes: ["Ingress", "Egress"],
          ingress: [{ ports: [port("serve-80-tcp")] }],
          egress: [{ ports: [port(80), port(81), port(80, "UDP")] }],
        },
      ],
    ],
    allows({ from, to, port: number, protocol }) {
      if (to === "x/a") return number === 80 && protocol === "tcp";
      return from !== "x/a" || protocol === "tcp" || (protocol === "udp" && number === 80);
    },
  },
  {
    name: "egress is denied at the client even if the server allows it",
    policies: [
      ["y", ingress(pod("b"), fromPeers({ namespaceSelector: ns("x") }))],
      ["x", egress(pod("a"))],
    ],
    allows: ({ from, to }) => from !== "x/a" && (to !== "y/b" || nsOf(from) === "x"),
  },
  {
    name: "egress to a server in a different namespace, by both selectors",
    policies: [["x", egress(pod("a"), toPeers({ namespaceSelector: ns("y"), podSelector: pod("a") }))]],
    allows: ({ from, to }) => from !== "x/a" || to === "y/a",
  },
  {
    name: "any port of one protocol",
    policies: [["x", ingress(pod("a"), { ports: [{ protocol: "TCP" }] })]],
    allows: ({ to, protocol }) => to !== "x/a" || protocol === "tcp",
  },
  {
    name: "any port of several protocols, and one of a third",
    policies: [["x", ingress(pod("a"), { ports: [{ protocol: "TCP" }, { protocol: "SCTP" }, port(80, "UDP")] })]],
    allows: ({ to, port: number, protocol }) => to !== "x/a" || protocol !== "udp" || number === 80,
  },
  {
    name: "an allow-all ingress policy takes precedence over others",
    policies: [
      ["x", ingress(all, { ports: [port(80)] })],
      ["x", ingress(all, {})],
    ],
    allows: () => true,
  },
  {
    name: "an allow-all egress policy takes precedence over others",
    policies: [
      ["x", egress(all, { ports: [port(80)] })],
      ["x", egress(all, {})],
    ],
    allows: () => true,
  },
  {
    name: "egress to a block",
    policies: [["x", egress(pod("a"), toPeers(...single(14)))]],
    allows: ({ from, to }) => from !== "x/a" || to === "y/a",
  },
  {
    name: "egress to a block with an exception",
    policies: [
      ["x", egress(pod("a"), toPeers(block("10.1.0.0/24", "10.1.0.14/32"), block("fd00:1::/64", "fd00:1::14/128")))],
    ],
    allows: ({ from, to }) => from !== "x/a" || to !== "y/a",
  },
  {
    name: "an address in a block and in the exception of another is allowed",
    policies: [
      ["x", egress(pod("a"), toPeers(block("10.1.0.0/24", "10.1.0.14/32"), block("fd00:1::/64", "fd00:1::14/128")))],
      ["x", egress(pod("a"), toPeers(...single(14)))],
    ],
    allows: () => true,
  },
  {
    name: "the same within one rule",
    policies: [
      [
        "x",
        egress(
          pod("a"),
          toPeers(block("10.1.0.0/24", "10.1.0.14/32"), block("fd00:1::/64", "fd00:1::14/128"), ...single(14)),
        ),
      ],
    ],
    allows: () => true,
  },
  {
    name: "all addresses but one, with exceptions that overlap",
    policies: [
      [
        "x",
        egress(
          pod("a"),
          toPeers(block("0.0.0.0/0", "10.1.0.12/31", "10.1.0.13/32", "10.1.0.12/31"), block("::/0", "fd00:1::12/127")),
        ),
      ],
    ],
    allows: ({ from, to }) => from !== "x/a" || !["x/b", "x/c"].includes(to),
  },
  {
    name: "ingress from a block",
    policies: [["x", ingress(pod("a"), fromPeers(...single(14)))]],
    allows: ({ from, to }) => to !== "x/a" || from === "y/a",
  },
  {
    name: "a block and a selector in one rule",
    policies: [["x", ingress(pod("a"), fromPeers(...single(14), { podSelector: pod("b") }))]],
    allows: ({ from, to }) => to !== "x/a" || from === "y/a" || from === "x/b",
  },
  {
    name: "ingress and egress are controlled independently",
    policies: [
      ["x", ingress(pod("a"), fromPeers({ podSelector: pod("b") }))],
      ["x", egress(pod("a"), toPeers({ podSelector: pod("b") }))],
    ],
    allows: ({ from, to }) => (to !== "x/a" || from === "x/b") && (from !== "x/a" || to === "x/b"),
  },
  {
    name: "a policy that allows only SCTP isolates from TCP and UDP",
    policies: [["x", ingress(pod("a"), { ports: [port(80, "SCTP")] })]],
    allows: ({ to, port: number, protocol }) => to !== "x/a" || (protocol === "sctp" && number === 80),
  },
  {
    name: "a policy that allows only UDP isolates from TCP",
    policies: [["x", ingress(pod("a"), { ports: [port(81, "UDP")] })]],
    allows: ({ to, port: number, protocol }) => to !== "x/a" || (protocol === "udp" && number === 81),
  },
  {
    name: "ports and ranges that overlap",
    policies: [
      ["x", ingress(pod("a"), { ports: [port(80), port(70, "TCP", 80), port(75, "TCP", 79), port(1, "UDP", 65535)] })],
    ],
    allows: ({ to, port: number, protocol }) =>
      to !== "x/a" || protocol === "udp" || (protocol === "tcp" && number === 80),
  },
  {
    name: "a range of ports, for egress",
    policies: [["x", egress(pod("a"), { to: [{ namespaceSelector: all }], ports: [port(81, "TCP", 90)] })]],
    allows: ({ from, port: number, protocol }) => from !== "x/a" || (protocol === "tcp" && number === 81),
  },
  {
    name: "several rules of one policy",
    policies: [
      [
        "x",
        ingress(
          pod("a"),
          { from: [{ podSelector: pod("b") }], ports: [port(80)] },
          { from: [{ namespaceSelector: ns("z") }], ports: [port(81)] },
        ),
      ],
    ],
    allows({ from, to, port: number, protocol }) {
      if (to !== "x/a") return true;
      return protocol === "tcp" && (number === 80 ? from === "x/b" : nsOf(from) === "z");
    },
  },
  {
    name: "a selector that matches no pod allows none",
    policies: [["x", ingress(pod("a"), fromPeers({ podSelector: pod("none") }))]],
    allows: ({ to }) => to !== "x/a",
  },
  {
    name: "a namespace selector that matches none allows none",
    policies: [["x", ingress(pod("a"), fromPeers({ namespaceSelector: ns("none") }))]],
    allows: ({ to }) => to !== "x/a",
  },
  {
    name: "an egress rule without policy types isolates in both directions",
    policies: [["x", { podSelector: pod("a"), egress: [{ to: [{ podSelector: all }] }] }]],
    allows: ({ from, to }) => to !== "x/a" && (from !== "x/a" || nsOf(to) === "x"),
  },
  {
    name: "policies of both sides apply",
    policies: [
      ["x", egress(all, toPeers({ namespaceSelector: ns("y") }))],
      ["y", ingress(all, fromPeers({ namespaceSelector: ns("x"), podSelector: pod("a") }))],
    ],
    allows: ({ from, to }) => (nsOf(from) !== "x" || nsOf(to) === "y") && (nsOf(to) !== "y" || from === "x/a"),
  },
  {
    name: "a whole namespace on its own",
    policies: [
      [
        "x",
        {
          podSelector: all,
          policyTypes: ["Ingress", "Egress"],
          ingress: [{ from: [{ podSelector: all }] }],
          egress: [{ to: [{ podSelector: all }] }],
        },
      ],
    ],
    allows: ({ from, to }) => (nsOf(from) === "x") === (nsOf(to) === "x"),
  },
];

for (const { name, policies, allows } of scenarios) {
  t.test(name, async (t) => {
    const cluster = new PolicyCluster();
    for (const [index, [namespace, spec]] of policies.entries()) cluster.setPolicy(namespace, `p${index}`, spec);
    t.same(cluster.differences(allows).slice(0, 5), []);
    t.ok(cluster.isAsRebuilt(), "the transactions lead to the same tables as a new start");
    for (const [index, [namespace]] of policies.entries()) cluster.removePolicy(namespace, `p${index}`);
    t.same(cluster.differences(() => true).slice(0, 5), [], "without the policies everything passes");
    t.ok(cluster.isAsRebuilt());
  });
}

t.test("a changed policy applies at once", async (t) => {
  const cluster = new PolicyCluster();
  cluster.setPolicy("x", "p", ingress(pod("a"), {}));
  t.same(
    cluster.differences(() => true),
    [],
  );
  cluster.setPolicy("x", "p", ingress(pod("a")));
  t.same(cluster.differences(({ to }) => to !== "x/a").slice(0, 5), []);
  cluster.setPolicy("x", "p", egress(pod("b"), toPeers({ podSelector: pod("c") })));
  t.same(cluster.differences(({ from, to }) => from !== "x/b" || to === "x/c").slice(0, 5), []);
  t.ok(cluster.isAsRebuilt());
});

t.test("a changed namespace is a peer, or none, at once", async (t) => {
  const cluster = new PolicyCluster();
  cluster.setPolicy("x", "p", ingress(pod("a"), fromPeers({ namespaceSelector: { matchLabels: { team: "blue" } } })));
  t.same(cluster.differences(({ to }) => to !== "x/a").slice(0, 5), []);
  cluster.setNamespace("y", { team: "blue" });
  t.same(cluster.differences(({ from, to }) => to !== "x/a" || nsOf(from) === "y").slice(0, 5), []);
  t.ok(cluster.isAsRebuilt());
  cluster.setNamespace("y");
  t.same(cluster.differences(({ to }) => to !== "x/a").slice(0, 5), []);
  t.ok(cluster.isAsRebuilt());
});

t.test("a changed pod is a peer, or isolated, at once", async (t) => {
  const cluster = new PolicyCluster();
  cluster.setPolicy(
    "x",
    "p",
    ingress({ matchLabels: { tier: "db" } }, fromPeers({ podSelector: { matchLabels: { tier: "app" } } })),
  );
  t.same(
    cluster.differences(() => true),
    [],
  );
  cluster.setPod("x/a", { tier: "db" });
  t.same(cluster.differences(({ to }) => to !== "x/a").slice(0, 5), []);
  cluster.setPod("x/b", { tier: "app" });
  cluster.setPod("y/b", { tier: "app" });
  t.same(cluster.differences(({ from, to }) => to !== "x/a" || from === "x/b").slice(0, 5), []);
  t.ok(cluster.isAsRebuilt());
  cluster.setPod("x/a");
  t.same(cluster.differences(() => true).slice(0, 5), []);
  t.ok(cluster.isAsRebuilt());
});

t.test("pods that come and go take their rules with them", async (t) => {
  const cluster = new PolicyCluster();
  cluster.setPolicy("x", "p", ingress(all, { from: [{ namespaceSelector: ns("y") }], ports: [port("serve-80-tcp")] }));
  for (const name of ["x/a", "y/b"]) {
    cluster.removePod(name);
    t.ok(cluster.isAsRebuilt());
    cluster.setPod(name);
    t.ok(cluster.isAsRebuilt());
  }
  for (const name of ["x/a", "x/b", "x/c"]) cluster.removePod(name);
  t.ok(cluster.isAsRebuilt());
  t.notMatch(JSON.stringify(cluster.tables.dump()), "peers-", "policies without pods of the node have no rules");
});

t.test("the change of one pod changes elements only", async (t) => {
  const cluster = new PolicyCluster();
  cluster.setPolicy("x", "p", ingress(all, fromPeers({ namespaceSelector: ns("y") })));
  cluster.removePod("y/b");
  t.match(cluster.lastChange, /^delete element ip t peers-\w+ \{ 10\.1\.0\.15 \}\ndelete element ip6 t .*\n$/);
  cluster.setPod("y/b");
  t.match(cluster.lastChange, /^add element ip t peers-\w+ \{ 10\.1\.0\.15 \}\nadd element ip6 t .*\n$/);
  cluster.setPod("y/b", { other: "label" });
  t.equal(cluster.lastChange, "");
});

t.test("replies, related errors and neighbor discovery pass, other ICMP needs a rule without ports", async (t) => {
  const cluster = new PolicyCluster();
  const packet = { source: "10.1.0.12", destination: "10.1.0.11", protocol: "icmp" } as const;
  cluster.setPolicy("x", "p", { podSelector: pod("a"), policyTypes: ["Ingress", "Egress"] });
  t.notOk(cluster.passes(packet));
  t.ok(cluster.passes({ ...packet, isReply: true }));
  t.ok(cluster.passes({ ...packet, isRelated: true }));
  const six = { source: "fd00:1::11", destination: "fd00:1::12", protocol: "icmpv6" } as const;
  t.notOk(cluster.passes({ ...six, icmpType: 128 }), "echo");
  for (const icmpType of [133, 135, 136, 143]) t.ok(cluster.passes({ ...six, icmpType }), `type ${icmpType}`);
  cluster.setPolicy("x", "p", ingress(pod("a"), { ports: [port(80)] }));
  t.notOk(cluster.passes(packet));
  cluster.setPolicy("x", "p", ingress(pod("a"), fromPeers({ podSelector: pod("b") })));
  t.ok(cluster.passes(packet));
});

t.test("link-local addresses do not lead around policies within the bridge", async (t) => {
  const cluster = new PolicyCluster();
  cluster.setPolicy("x", "p", ingress(pod("a")));
  const packet = { source: "fe80::1", destination: "fe80::2", protocol: "tcp", port: 80 } as const;
  t.notOk(cluster.passes({ ...packet, device: "br0" }));
  t.ok(cluster.passes({ ...packet, device: "docker0" }));
});

t.test("addresses outside of the cluster match blocks, or rules for all peers", async (t) => {
  const cluster = new PolicyCluster();
  const packet = { source: "203.0.113.7", destination: "10.1.0.11", protocol: "tcp", port: 80 } as const;
  cluster.setPolicy("x", "p", ingress(pod("a"), fromPeers({ namespaceSelector: all })));
  t.notOk(cluster.passes(packet));
  cluster.setPolicy("x", "p", ingress(pod("a"), fromPeers(block("203.0.113.0/24", "203.0.113.8/29"))));
  t.ok(cluster.passes(packet));
  t.notOk(cluster.passes({ ...packet, source: "203.0.113.9" }));
  cluster.setPolicy("x", "p", ingress(pod("a"), { ports: [port(80)] }));
  t.ok(cluster.passes(packet));
});
