/** Kinds whose objects are stored although no part of this server acts on them: writes get a warning. */
import { plugins } from "../../admission/plugins/built-in-plugins.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { ENFORCE_POLICIES } from "../control-plane/node-bootstrap.ts";

type Config = Pick<ApiServerConfig, "admission" | "agentFlags" | "limits" | "observability">;

interface UnenforcedKind {
  readonly group: string;
  readonly kind: string;
  /** Why the object has no effect; undefined if it has its effect. */
  explain(object: ApiObject, config: Config): string | undefined;
}

const ADMISSION = "admissionregistration.svc.io";
const FLOW_CONTROL = "flowcontrol.apiserver.svc.io";

const unenforcedKinds: readonly UnenforcedKind[] = [
  ofPlugin("ValidatingAdmissionPolicy", ADMISSION, "ValidatingAdmissionPolicy"),
  ofPlugin("ValidatingAdmissionPolicy", ADMISSION, "ValidatingAdmissionPolicyBinding"),
  ofPlugin("MutatingAdmissionPolicy", ADMISSION, "MutatingAdmissionPolicy"),
  ofPlugin("MutatingAdmissionPolicy", ADMISSION, "MutatingAdmissionPolicyBinding"),
  ofPlugin("ValidatingAdmissionWebhook", ADMISSION, "ValidatingWebhookConfiguration"),
  ofPlugin("MutatingAdmissionWebhook", ADMISSION, "MutatingWebhookConfiguration"),
  ofPlugin("LimitRanger", "", "LimitRange"),
  ofPlugin("ResourceQuota", "", "ResourceQuota"),
  // Pods get the number of the class from the plugin only.
  ofPlugin("Priority", "scheduling.svc.io", "PriorityClass"),
  {
    group: "networking.svc.io",
    kind: "NetworkPolicy",
    explain(_object, { agentFlags = [] }) {
      // Another pod network may enforce policies itself.
      const isOwnNetwork = agentFlags.some((flag) => flag.startsWith("--pod-network="));
      return isOwnNetwork && !agentFlags.includes(ENFORCE_POLICIES) ? `${ENFORCE_POLICIES} is off` : undefined;
    },
  },
  { group: FLOW_CONTROL, kind: "FlowSchema", explain: explainFlowControl },
  { group: FLOW_CONTROL, kind: "PriorityLevelConfiguration", explain: explainFlowControl },
  {
    group: "coordination.svc.io",
    kind: "LeaseCandidate",
    explain: () => "this build has no coordinated leader election",
  },
  {
    group: "storage.svc.io",
    kind: "VolumeAttributesClass",
    // With the gate, CSI drivers' resizers act on the classes of claims.
    explain: explainGate("VolumeAttributesClass"),
  },
];

/** A kind on which nothing acts without a feature gate. */
function explainGate(gate: string): UnenforcedKind["explain"] {
  return (_object, { observability }) =>
    observability.features.some(({ name, enabled }) => name === gate && enabled)
      ? undefined
      : `the feature gate ${gate} is off`;
}

function explainFlowControl(_object: ApiObject, { limits }: Config): string | undefined {
  return limits.inFlight.shared ? undefined : "--enable-priority-and-fairness is off";
}

/** A kind on which only an admission plugin acts, which a flag or a feature gate may disable. */
function ofPlugin(plugin: string, group: string, kind: string): UnenforcedKind {
  const gate = plugins.find(({ name }) => name === plugin)?.featureGate;
  return {
    group,
    kind,
    explain(_object, { admission, observability }) {
      const isOff = observability.features.some(({ name, enabled }) => name === gate && !enabled);
      if (isOff) return `the feature gate ${gate} is off`;
      const isDisabled = admission.disabled.includes(plugin) && !admission.enabled.includes(plugin);
      return isDisabled ? `the admission plugin ${plugin} is disabled` : undefined;
    },
  };
}

/** Returns the warning for a written object: `ValidatingAdmissionPolicy is not enforced: …`. */
export function unenforcedWarnings(
  config: Config,
  explainOther: (kind: Kind, object: ApiObject) => MaybePromise<string | undefined>,
): (kind: Kind, object: ApiObject) => MaybePromise<string | undefined> {
  const rows = new Map(unenforcedKinds.map((row) => [`${row.group}/${row.kind}`, row]));
  return (kind, object) => {
    const reason = rows.get(`${kind.group}/${kind.kind}`)?.explain(object, config) ?? explainOther(kind, object);
    return andThen(reason, (text) => (text === undefined ? undefined : `${kind.kind} is not enforced: ${text}`));
  };
}
