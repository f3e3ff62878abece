import t from "tap";
import type { NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec } from "./schema.ts";
import { networkPolicyWarnings, validateNetworkPolicy } from "./validation.ts";

const errorsOf = (spec: NetworkPolicySpec, previous?: NetworkPolicySpec) =>
  validateNetworkPolicy({ spec }, previous && { spec: previous }).map(({ field, detail }) => `${field}: ${detail}`);
const ofPort = (port: NetworkPolicyPort) => errorsOf({ podSelector: {}, ingress: [{ ports: [port] }] });
const ofPeer = (peer: NetworkPolicyPeer) => errorsOf({ podSelector: {}, egress: [{ to: [peer] }] });

t.test("validateNetworkPolicy() requires endPort to be at least a numeric port", async (t) => {
  const cases: readonly (readonly [port: NetworkPolicyPort, problem: RegExp | undefined])[] = [
    [{ port: 80, endPort: 80 }, undefined],
    [{ port: 80, endPort: 79 }, /greater than or equal to `port`/],
    [{ port: "web", endPort: 80 }, /`port` is non-numeric/],
    [{ endPort: 80 }, /`port` is not specified/],
    [{ port: 80, endPort: 70_000 }, /between 1 and 65535/],
  ];
  for (const [port, problem] of cases) {
    const found = ofPort(port);
    if (problem === undefined) t.same(found, []);
    else t.match(found[0], problem);
  }
});

t.test("validateNetworkPolicy() requires exceptions within their block", async (t) => {
  const cases: readonly (readonly [cidr: string, except: string, problem: RegExp | undefined])[] = [
    ["10.0.0.0/8", "10.1.0.0/16", undefined],
    ["10.0.0.0/8", "10.0.0.0/8", /strict subset/],
    ["10.0.0.0/8", "11.0.0.0/16", /strict subset/],
    ["::/0", "10.0.0.0/16", /strict subset/],
    ["10.0.0.0/8", "x", /valid CIDR value/],
  ];
  for (const [cidr, except, problem] of cases) {
    const found = ofPeer({ ipBlock: { cidr, except: [except] } });
    if (problem === undefined) t.same(found, [], except);
    else t.match(found[0], problem, except);
  }
  t.match(ofPeer({ ipBlock: { cidr: "10.0.0.0/8" }, podSelector: {} })[0], /both ipBlock and another peer/);
});

t.test("validateNetworkPolicy() accepts the invalid selector of a stored policy", async (t) => {
  const bad = { podSelector: { matchExpressions: [{ key: "a", operator: "In", values: ["no label!"] }] } };
  t.equal(errorsOf(bad).length, 1);
  t.same(errorsOf(bad, bad), []);
});

t.test("networkPolicyWarnings() reports blocks that are not canonical", async (t) => {
  const ipBlock = { cidr: "10.1.0.0/8", except: ["010.2.0.0/16"] };
  const found = networkPolicyWarnings({ spec: { podSelector: {}, ingress: [{ from: [{ ipBlock }] }] } });
  t.match(found, [/^spec\.ingress\[0\]\.from\[0\]\.ipBlock\.cidr: /, /\.except\[0\]: non-standard CIDR value/]);
});
