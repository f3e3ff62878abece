import t from "tap";
import { masqueradeRules } from "./masquerade-rules.ts";

const base = { family: "IPv4", table: "svc-pod-network", podCidrs: ["10.244.0.0/24"] } as const;

t.test("packets of pods keep their address within the cluster and to groups", async (t) => {
  const text = masqueradeRules({ ...base, clusterCidrs: ["10.244.0.0/16"] });
  t.match(text, "set pods { type ipv4_addr; flags interval; auto-merge; elements = { 10.244.0.0/24 } }");
  t.match(text, "elements = { 10.244.0.0/16, 10.244.0.0/24, 224.0.0.0/4 }");
  t.match(text, /^add table ip svc-pod-network\ndelete table ip svc-pod-network\ntable ip svc-pod-network \{/);
  t.match(masqueradeRules({ ...base, family: "IPv6", podCidrs: ["fd00::/64"], clusterCidrs: [] }), "ip6 saddr @pods");
});

t.test("without pods the table is removed", async (t) => {
  t.equal(
    masqueradeRules({ ...base, podCidrs: [], clusterCidrs: [] }),
    "add table ip svc-pod-network\ndelete table ip svc-pod-network\n",
  );
});
