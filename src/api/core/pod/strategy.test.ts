import t from "tap";
import type { PodSpec } from "../pod-spec/schema.ts";
import type { Pod } from "./schema.ts";
import { podStatusStrategy, podStrategy } from "./strategy.ts";

const ARMOR = "container.apparmor.security.beta.kubernetes.io/";
const container = { name: "a", image: "web:1" };

function created(spec: Partial<PodSpec>, metadata: Pod["metadata"] = {}): Pod {
  const sent: Pod = { metadata: { name: "web", ...metadata }, spec: { containers: [container], ...spec } };
  const complete = podStrategy.setDefaults?.(sent) ?? sent;
  return podStrategy.prepareForCreate?.(complete, "") ?? complete;
}

t.test("podStrategy sets an AppArmor profile in the annotation and in the field", async (t) => {
  const field = created({
    containers: [{ ...container, securityContext: { appArmorProfile: { type: "Unconfined" } } }],
  });
  t.same(field.metadata?.annotations, { [`${ARMOR}a`]: "unconfined" });
  const sent = { annotations: { [`${ARMOR}a`]: "localhost/strict" } };
  const annotated = created({}, sent);
  t.same(annotated.spec?.containers[0]?.securityContext?.appArmorProfile, {
    type: "Localhost",
    localhostProfile: "strict",
  });
  const warned = podStrategy.warningsBeforePrepare?.({ metadata: sent, spec: { containers: [container] } });
  t.match(warned, [/deprecated since v1.30; use the "appArmorProfile" field instead$/]);
  t.same(podStrategy.validate?.(annotated), []);
});

t.test("podStrategy adds matchLabelKeys to the selectors of affinity terms", async (t) => {
  const term = {
    topologyKey: "zone",
    labelSelector: {},
    matchLabelKeys: ["rev", "none", "constructor"],
    mismatchLabelKeys: ["team"],
  };
  const pod = created(
    { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } },
    { labels: { rev: "7", team: "x" } },
  );
  const [filled] = pod.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  t.same(filled?.labelSelector?.matchExpressions, [
    { key: "rev", operator: "In", values: ["7"] },
    { key: "team", operator: "NotIn", values: ["x"] },
  ]);
});

t.test("podStatusStrategy rejects a terminated container that runs again", async (t) => {
  const ended = {
    name: "a",
    ready: false,
    restartCount: 0,
    image: "",
    imageID: "",
    state: { terminated: { exitCode: 1 } },
  };
  const running = { ...ended, state: { running: {} } };
  const errorsOf = (restartPolicy: "Always" | "OnFailure" | "Never"): readonly string[] => {
    const pod = created({ restartPolicy });
    const previous: Pod = { ...pod, status: { ...pod.status, containerStatuses: [ended] } };
    const next = podStatusStrategy.prepareForUpdate(
      { ...pod, status: { ...pod.status, containerStatuses: [running] } },
      previous,
      "",
    );
    return (podStatusStrategy.validateUpdate?.(next, previous) ?? []).map(({ field }) => field);
  };
  t.same(errorsOf("Always"), []);
  t.same(errorsOf("OnFailure"), []);
  t.same(errorsOf("Never"), ["status.containerStatuses[0].state"]);
});

t.test("podStatusStrategy keeps owners and the QoS class, and validates addresses", async (t) => {
  const pod = created({}, { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }] });
  const sent: Pod = { ...pod, metadata: { name: "web" }, status: { podIP: "10.0.0.1", hostIPs: [{ ip: "x" }] } };
  const next = podStatusStrategy.prepareForUpdate(sent, pod, "");
  t.equal(next.metadata?.ownerReferences?.length, 1);
  t.match(next.status, { qosClass: "BestEffort", podIPs: [{ ip: "10.0.0.1" }] });
  const errors = (podStatusStrategy.validateUpdate?.(next, pod) ?? []).map(({ field }) => field);
  t.same(errors, ["status.hostIPs[0].ip", "status.hostIPs[0]"]);
});
