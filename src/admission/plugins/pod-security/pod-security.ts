/** PodSecurity: enforces the Pod Security Standards that the labels of the namespace select. */

import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ObjectMeta } from "../../../api/meta/object-meta.ts";
import { StatusError } from "../../../api/status.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import {
  type AdmissionAttributes,
  type AdmissionRequest,
  matchesResource,
  metadataOf,
  newForbidden,
} from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import type { CheckedPod } from "./check.ts";
import { readPodSecurityOptions } from "./configuration.ts";
import { detailsText, findViolations } from "./evaluate.ts";
import { formatLevel, type LevelVersion, MODES, type ParsedPolicy, type Policy, parsePolicy } from "./level.ts";
import { createPodSecurityMetrics, type PodSecurityMetrics } from "./metrics.ts";
import { isSignificantUpdate } from "./pod-change.ts";
import { isTightened, warnExistingPods } from "./present-pods.ts";
import { hasTemplate, templateOf } from "./templates.ts";

const ANNOTATION_PREFIX = "pod-security.kubernetes.io/";
/** Subresources that do not change the security of a pod, or are not pods. */
const IGNORED_SUBRESOURCES: ReadonlySet<string> = new Set(
  "exec attach binding eviction log portforward proxy status".split(" "),
);

export function podSecurity(
  deps: Pick<PluginDeps, "reader" | "clock" | "metrics" | "isFeatureEnabled" | "configuration">,
): AdmissionPlugin {
  const { reader, clock, isFeatureEnabled } = deps;
  const { defaults, exempt } = readPodSecurityOptions(deps.configuration);
  const metrics = createPodSecurityMetrics(deps.metrics);
  const relaxUserNamespaces = isFeatureEnabled("UserNamespacesPodSecurityStandards");
  const toCheckedPod = (metadata: ObjectMeta, spec: PodSpec): CheckedPod => ({
    metadata,
    spec,
    relaxUserNamespaces,
  });

  async function validateNamespace(request: AdmissionRequest): Promise<void> {
    const { enforce } = parsePolicy(metadataOf(request.object).labels, defaults).policy;
    const before = parsePolicy(metadataOf(request.oldObject).labels, defaults).policy.enforce;
    if (!isTightened(enforce, before) || exempt.namespaces.has(request.namespace)) return;
    const pods = (await reader.list(podKind, request.namespace, request)).filter(({ spec }) => !isExempt(spec));
    for (const text of warnExistingPods(request.namespace, pods, enforce, toCheckedPod, clock)) request.warn(text);
  }

  function validatePod(request: AdmissionRequest): MaybePromise<void> {
    const dimension = exempt.namespaces.has(request.namespace)
      ? "namespace"
      : exempt.usernames.has(request.user.name)
        ? "user"
        : undefined;
    if (dimension !== undefined) return recordExemption(request, dimension);
    return andThen(reader.get(namespaceKind, "", request.namespace, request), (found) => {
      if (found !== undefined) return evaluateInNamespace(found, request);
      throw new StatusError(500, "InternalError", `failed to lookup namespace ${JSON.stringify(request.namespace)}`);
    });
  }

  function evaluateInNamespace({ metadata }: Namespace, request: AdmissionRequest): void {
    const parsed = parsePolicy(metadata?.labels, defaults);
    const isPod = request.kind.plural === podKind.plural;
    const modes = isPod ? MODES : (["audit", "warn"] as const);
    if (parsed.errors.length === 0 && modes.every((mode) => parsed.policy[mode].level === "privileged")) {
      if (isPod) request.annotate(`${ANNOTATION_PREFIX}enforce-policy`, "privileged:latest");
      return;
    }
    const target = isPod ? (request.object as Pod) : templateOf(request.object!);
    if (target?.spec === undefined) return;
    if (isPod && request.operation === "UPDATE" && !isSignificantUpdate(target as Pod, request.oldObject as Pod))
      return;
    if (isExempt(target.spec)) recordExemption(request, "runtimeClass");
    else evaluatePod(request, metrics, parsed, toCheckedPod(metadataOf(target), target.spec), isPod);
  }

  function isExempt(spec: PodSpec | undefined): boolean {
    return exempt.runtimeClasses.has(spec?.runtimeClassName ?? "");
  }

  function recordExemption(request: AdmissionRequest, dimension: string): void {
    request.annotate(`${ANNOTATION_PREFIX}exempt`, dimension);
    metrics.recordExemption(request);
  }

  return {
    name: "PodSecurity",
    handles: (attributes) => matchesResource(attributes, namespaceKind, ["UPDATE"]) || appliesToPods(attributes),
    validate: (request) =>
      request.kind.plural === namespaceKind.plural ? validateNamespace(request) : validatePod(request),
  };
}

/** Pods of templates are evaluated again on creation, so templates only cause warnings and audit annotations. */
function evaluatePod(
  request: AdmissionRequest,
  metrics: PodSecurityMetrics,
  { policy, errors }: ParsedPolicy,
  pod: CheckedPod,
  enforced: boolean,
): void {
  if (errors.length > 0) {
    request.annotate(`${ANNOTATION_PREFIX}error`, `Failed to parse policy: ${errors.join(", ")}`);
    metrics.recordError(request);
  }
  const evaluate = createEvaluator(pod);
  const denied = enforced ? evaluate(policy.enforce) : "";
  if (enforced) {
    request.annotate(`${ANNOTATION_PREFIX}enforce-policy`, formatLevel(policy.enforce));
    metrics.recordEvaluation(request, "enforce", policy.enforce, denied === "" ? "allow" : "deny");
  }
  const audited = evaluate(policy.audit);
  if (audited !== "") {
    request.annotate(`${ANNOTATION_PREFIX}audit-violations`, `would ${violationPrefix(policy, "audit")}: ${audited}`);
    metrics.recordEvaluation(request, "audit", policy.audit, "deny");
  }
  if (denied !== "") throw newForbidden(request, `${violationPrefix(policy, "enforce", "violates")}: ${denied}`);
  const warned = evaluate(policy.warn);
  if (warned === "") return;
  request.warn(`would ${violationPrefix(policy, "warn")}: ${warned}`);
  metrics.recordEvaluation(request, "warn", policy.warn, "deny");
}

function appliesToPods({ kind, operation, subresource }: AdmissionAttributes): boolean {
  if (operation !== "CREATE" && operation !== "UPDATE") return false;
  const isPod = kind.group === podKind.group && kind.plural === podKind.plural;
  return isPod ? !IGNORED_SUBRESOURCES.has(subresource) : subresource === "" && hasTemplate(kind);
}

/** `violate PodSecurity "restricted:latest"` */
function violationPrefix(policy: Policy, mode: keyof Policy, verb = "violate"): string {
  return `${verb} PodSecurity ${JSON.stringify(formatLevel(policy[mode]))}`;
}

/** Caches messages by level, since most namespaces enforce, audit and warn at the same level. */
function createEvaluator(pod: CheckedPod): (level: LevelVersion) => string {
  const messages = new Map<string, string>();
  return (level) => {
    const name = formatLevel(level);
    const found = messages.get(name) ?? detailsText(findViolations(pod, level));
    messages.set(name, found);
    return found;
  };
}
