import { readFileSync } from "node:fs";
import t from "tap";
import { apiserverGates } from "./apiserver.ts";
import { apiserverGatesIn } from "./apiserver-history.ts";

const SHARED = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;

t.test("apiserverGatesIn() returns the gates of each release", async (t) => {
  t.same(apiserverGatesIn("1.33"), apiserverGates);
  t.match(apiserverGatesIn("1.32").WatchList, { stage: "BETA", default: true, effective: true });
  t.match(apiserverGatesIn("1.31").WatchList, { stage: "ALPHA", default: false, effective: true });
  t.equal(apiserverGatesIn("1.32").ContainerStopSignals, undefined);
});

t.test("apiserverGatesIn() agrees with Kubernetes' history of them", async (t) => {
  interface Fact {
    readonly name: string;
    readonly history: readonly (readonly [since: string, stage: string, value: boolean])[];
  }
  let facts: readonly Fact[];
  try {
    facts = JSON.parse(readFileSync(`${SHARED}/facts/feature-gates.json`, "utf8")).gates;
  } catch {
    t.comment("facts are not here");
    return;
  }
  const minorOf = (version: string): number => Number(version.split(".")[1]);
  for (const version of ["1.31", "1.32", "1.33"]) {
    const table = apiserverGatesIn(version);
    for (const { name, history } of facts) {
      const gate = name.replaceAll("Kubelet", "Svclet");
      // The specification has one default that is not Kubernetes'.
      if (apiserverGates[gate] === undefined || gate === "NodeLogQuery") continue;
      const then = history.findLast(([since]) => minorOf(since) <= minorOf(version));
      const actual = table[gate] && [table[gate].stage, table[gate].default];
      t.same(actual, then && [then[1].toUpperCase(), then[2]], `${gate} in ${version}`);
    }
  }
});
