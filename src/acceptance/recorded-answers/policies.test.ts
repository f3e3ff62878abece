/**
 * Compares responses under admission policies with those recorded of a Kubernetes 1.33 server
 * (`shared/oracles/recorded-apiserver-more/policies.jsonl`). `testdata/recorded-differences/policies.json` lists the
 * scenarios that differ by reason; none may be added.
 *
 *     SVC_SCENARIO=mutating node src/acceptance/recorded-answers/policies.test.ts   prints the differences of these
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/policies.test.ts            removes scenarios that agree now
 */
import t from "tap";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { RecordedDifferences } from "./recorded-differences.ts";
import { playTogether, recordedScenarios } from "./scenarios.ts";

const GATE = "MutatingAdmissionPolicy";
const { observability, apis } = defaultConfig;
const features = observability.features.map((gate) => (gate.name === GATE ? { ...gate, enabled: true } : gate));
const config = {
  observability: { ...observability, features },
  apis: { ...apis, runtimeConfig: { "admissionregistration.k8s.io/v1alpha1": "true" } },
  embeddedControllers: ["validatingadmissionpolicy-status-controller"],
};

t.test(
  "requests under admission policies get the responses of a Kubernetes 1.33 server",
  { timeout: 300_000 },
  async (t) => {
    const scenarios = recordedScenarios("policies", "recorded-apiserver-more");
    if (scenarios === undefined) {
      t.comment("Skipped: shared/ is not present");
      return;
    }
    const wanted = process.env.SVC_SCENARIO;
    const selected = scenarios.filter(({ id }) => wanted === undefined || id.includes(wanted));
    const withoutController = selected.filter(({ server }) => server?.controller === undefined);
    const withController = selected.filter(({ server }) => server?.controller !== undefined);
    const outcomes = [
      ...(await playTogether(withoutController, { ...config, embeddedControllers: [] })),
      ...(withController.length === 0 ? [] : await playTogether(withController, config)),
    ];
    const differences = new RecordedDifferences("policies");
    for (const { scenario, difference } of outcomes) differences.add(scenario.id, difference);
    t.comment(`${outcomes.length - differences.count}/${outcomes.length} scenarios`);
    if (wanted !== undefined) {
      for (const { scenario, difference } of outcomes) {
        if (difference !== undefined) console.log(`${scenario.id}\n    ${difference}`);
      }
      return;
    }
    t.same(differences.unlisted(), []);
    t.same(differences.resolved(), [], "every listed scenario differs (SVC_RECORD=1 removes the others)");
  },
);
