/** Pods must be as secure as the labels of their namespace demand: Kubernetes' PodSecurity. */

import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ObjectMeta } from "../../../api/meta/object-meta.ts";
import { StatusError } from "../../../api/status.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import { matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionAttributes, AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";
import type { CheckedPod } from "./check.ts";
import { podSecuritySettings } from "./configuration.ts";
import { detailsText, violationsOf } from "./evaluate.ts";
import { formatLevel, type LabelledPolicy, type LevelVersion, MODES, type Policy, policyOf } from "./level.ts";
import { podSecurityMetrics } from "./metrics.ts";
import { changesSecurity } from "./pod-change.ts";
import { presentViolations, tightens } from "./present-pods.ts";
import { hasTemplate, templateOf } from "./templates.ts";

const ANNOTATIONS = "pod-security.kubernetes.io/";
/** What can change a pod in no way that matters here, or is no pod. */
const IGNORED: ReadonlySet<string> = new Set("exec attach binding eviction log portforward proxy status".split(" "));

export function podSecurity(
  deps: Pick<PluginDeps, "reader" | "clock" | "metrics" | "isFeatureEnabled" | "configuration">,
): AdmissionPlugin {
  const { reader, clock, isFeatureEnabled } = deps;
  const { defaults, exempt } = podSecuritySettings(deps.configuration);
  const metrics = podSecurityMetrics(deps.metrics);
  const relaxed = isFeatureEnabled("UserNamespacesPodSecurityStandards");
  const checked = (metadata: ObjectMeta, spec: PodSpec): CheckedPod => ({ metadata, spec, relaxed });

  async function validateNamespace(request: AdmissionRequest): Promise<void> {
    const { enforce } = policyOf(metadataOf(request.object).labels, defaults).policy;
    const before = policyOf(metadataOf(request.oldObject).labels, defaults).policy.enforce;
    if (!tightens(enforce, before) || exempt.namespaces.has(request.namespace)) return;
    const pods = (await reader.list(podKind, request.namespace, request)).filter(({ spec }) => !isExempt(spec));
    for (const text of presentViolations(request.namespace, pods, enforce, checked, clock)) request.warn(text);
  }

  function validatePod(request: AdmissionRequest): MaybePromise<void> {
    const sort = exempt.namespaces.has(request.namespace)
      ? "namespace"
      : exempt.usernames.has(request.user.name)
        ? "user"
        : undefined;
    if (sort !== undefined) return exempted(request, sort);
    return andThen(reader.get(namespaceKind, "", request.namespace, request), (found) => {
      if (found !== undefined) return judgeIn(found, request);
      throw new StatusError(500, "InternalError", `failed to reader namespace ${JSON.stringify(request.namespace)}`);
    });
  }

  function judgeIn({ metadata }: Namespace, request: AdmissionRequest): void {
    const labelled = policyOf(metadata?.labels, defaults);
    const isPod = request.kind.plural === podKind.plural;
    const modes = isPod ? MODES : (["audit", "warn"] as const);
    if (labelled.errors.length === 0 && modes.every((mode) => labelled.policy[mode].level === "privileged")) return;
    const target = isPod ? (request.object as Pod) : templateOf(request.object!);
    if (target?.spec === undefined) return;
    if (isPod && request.operation === "UPDATE" && !changesSecurity(target as Pod, request.oldObject as Pod)) return;
    if (isExempt(target.spec)) exempted(request, "runtimeClass");
    else judge(request, labelled, checked(metadataOf(target), target.spec), isPod);
  }

  function isExempt(spec: PodSpec | undefined): boolean {
    return exempt.runtimeClasses.has(spec?.runtimeClassName ?? "");
  }

  function exempted(request: AdmissionRequest, sort: string): void {
    request.annotate(`${ANNOTATIONS}exempt`, sort);
    metrics.exempted(request);
  }

  /** What is made of templates is judged again when it is made: they are told of, not refused. */
  function judge(
    request: AdmissionRequest,
    { policy, errors }: LabelledPolicy,
    pod: CheckedPod,
    enforced: boolean,
  ): void {
    if (errors.length > 0) {
      request.annotate(`${ANNOTATIONS}error`, `Failed to parse policy: ${errors.join(", ")}`);
      metrics.failed(request);
    }
    const evaluate = evaluator(pod);
    const denied = enforced ? evaluate(policy.enforce) : "";
    if (enforced) {
      request.annotate(`${ANNOTATIONS}enforce-policy`, formatLevel(policy.enforce));
      metrics.evaluated(request, "enforce", policy.enforce, denied === "" ? "allow" : "deny");
    }
    const audited = evaluate(policy.audit);
    if (audited !== "") {
      request.annotate(`${ANNOTATIONS}audit-violations`, `would ${violates(policy, "audit")}: ${audited}`);
      metrics.evaluated(request, "audit", policy.audit, "deny");
    }
    if (denied !== "") throw newForbidden(request, `${violates(policy, "enforce", "violates")}: ${denied}`);
    const warned = evaluate(policy.warn);
    if (warned === "") return;
    request.warn(`would ${violates(policy, "warn")}: ${warned}`);
    metrics.evaluated(request, "warn", policy.warn, "deny");
  }

  return {
    name: "PodSecurity",
    handles: (attributes) => matchesResource(attributes, namespaceKind, ["UPDATE"]) || isOfPods(attributes),
    validate: (request) =>
      request.kind.plural === namespaceKind.plural ? validateNamespace(request) : validatePod(request),
  };
}

function isOfPods({ kind, operation, subresource }: AdmissionAttributes): boolean {
  if (operation !== "CREATE" && operation !== "UPDATE") return false;
  const isPod = kind.group === podKind.group && kind.plural === podKind.plural;
  return isPod ? !IGNORED.has(subresource) : subresource === "" && hasTemplate(kind);
}

/** `violate PodSecurity "restricted:latest"` */
function violates(policy: Policy, mode: keyof Policy, verb = "violate"): string {
  return `${verb} PodSecurity ${JSON.stringify(formatLevel(policy[mode]))}`;
}

/** What a level finds, as text; most namespaces demand, audit and warn of the same one. */
function evaluator(pod: CheckedPod): (level: LevelVersion) => string {
  const known = new Map<string, string>();
  return (level) => {
    const name = formatLevel(level);
    const found = known.get(name) ?? detailsText(violationsOf(pod, level));
    known.set(name, found);
    return found;
  };
}
