/** Rules for containers: those for all, and those for each of the three lists of a pod. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notFoundField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1123Label, portName, portNumber, validateName } from "../../meta/validation/names.ts";
import { validateContainerClaims } from "../pod-spec/claims-validation.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import { PROTOCOLS } from "../protocols.ts";
import { validateContainerResources, validateResizePolicy } from "../resources/validation.ts";
import type { Volume } from "../volume/schema.ts";
import { validateEnv, validateEnvFrom } from "./env-validation.ts";
import { validateHandler, validateProbe } from "./probe-validation.ts";
import type { Container, ContainerPort, EphemeralContainer } from "./schema.ts";
import { validateSecurityContext } from "./security-context-validation.ts";
import { validateDevices, validateMounts } from "./volume-mount-validation.ts";

/** The properties of the pod that the rules for its containers depend on. */
export interface PodContext {
  readonly volumes: ReadonlyMap<string, Volume>;
  readonly gracePeriodSeconds: number;
  readonly restartPolicy: string;
  /** Whether the pod uses the host's user namespace. */
  readonly hostUsers: boolean;
  /** The names of the pod's resource claims. */
  readonly claimNames: ReadonlySet<string>;
}

/** Validates all containers of a pod. `path` is the path of the spec. */
export function validateContainers(spec: PodSpec, path: string, pod: PodContext): readonly FieldError[] {
  return [
    ...validateMainContainers(spec.containers, child(path, "containers"), pod),
    ...validateInitContainers(spec, child(path, "initContainers"), pod),
    ...validateEphemeralContainers(spec, child(path, "ephemeralContainers"), pod),
  ];
}

function validateMainContainers(
  containers: readonly Container[],
  path: string,
  pod: PodContext,
): readonly FieldError[] {
  if (containers.length === 0) return [requiredField(path)];
  const names = new Set<string>();
  return [
    ...validateEach(containers, (container, i) => {
      const at = index(path, i);
      const forbidden = forbiddenField(child(at, "restartPolicy"), "may not be set for non-init containers");
      return [
        ...validateContainer(container, at, pod),
        ...validateUnique(container.name, child(at, "name"), names),
        ...validateHooksAndProbes(container, at, pod),
        ...(container.restartPolicy === undefined ? [] : [forbidden]),
      ];
    }),
    ...validateHostPorts(containers, path),
  ];
}

function validateInitContainers(spec: PodSpec, path: string, pod: PodContext): readonly FieldError[] {
  const names = new Set(spec.containers.map(({ name }) => name));
  return validateEach(spec.initContainers ?? [], (container, i) => {
    const at = index(path, i);
    const { restartPolicy } = container;
    const supported = restartPolicy === undefined || restartPolicy === "Always";
    return [
      ...validateContainer(container, at, pod),
      ...(supported ? [] : [notSupported(child(at, "restartPolicy"), restartPolicy, ["Always"])]),
      // A missing name is reported once.
      ...(container.name === "" && !names.has("") ? [] : validateUnique(container.name, child(at, "name"), names)),
      // Init containers run one at a time, so that their host ports do not conflict.
      ...validateHostPorts([container], path),
      ...(restartPolicy === "Always"
        ? validateHooksAndProbes(container, at, pod)
        : forbidFields(
            container,
            at,
            HOOKS_AND_PROBES,
            "may not be set for init containers without restartPolicy=Always",
          )),
    ];
  });
}

/** The fields of containers that keep running. */
const HOOKS_AND_PROBES = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const;

/** The fields that ephemeral containers must not set. */
const EPHEMERAL_FORBIDDEN = [
  "ports",
  "resources",
  "resizePolicy",
  "restartPolicy",
  "livenessProbe",
  "readinessProbe",
  "startupProbe",
  "lifecycle",
] as const;

function validateEphemeralContainers(spec: PodSpec, path: string, pod: PodContext): readonly FieldError[] {
  const others = new Set([...spec.containers, ...(spec.initContainers ?? [])].map(({ name }) => name));
  const names = new Set(others);
  const detail = "cannot be set for an Ephemeral Container";
  return validateEach(spec.ephemeralContainers ?? [], (container: EphemeralContainer, i) => {
    const at = index(path, i);
    const { targetContainerName: target = "", volumeMounts = [] } = container;
    return [
      ...validateContainer(container, at, pod),
      ...validateImageWhitespace(container, at),
      ...validateUnique(container.name, child(at, "name"), names),
      ...(target === "" || others.has(target) ? [] : [notFoundField(child(at, "targetContainerName"), target)]),
      ...forbidFields(container, at, EPHEMERAL_FORBIDDEN, detail),
      ...validateEach(volumeMounts, (mount, mountIndex) =>
        forbidFields(mount, index(child(at, "volumeMounts"), mountIndex), ["subPath", "subPathExpr"], detail),
      ),
    ];
  });
}

function validateUnique(name: string, path: string, used: Set<string>): readonly FieldError[] {
  const duplicate = used.has(name);
  used.add(name);
  return duplicate ? [duplicateField(path, name)] : [];
}

/** Rejects fields that are set; an empty list or object counts as unset. */
function forbidFields<T extends object>(
  object: T,
  path: string,
  names: readonly (keyof T & string)[],
  detail: string,
): readonly FieldError[] {
  const isSet = (value: unknown): boolean =>
    value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  return names
    .filter((name) => isSet(object[name]) && !(name === "resources" && isEmpty(object[name])))
    .map((name) => forbiddenField(child(path, name), detail));
}

function isEmpty(value: unknown): boolean {
  return Object.values(value as object).every((list) => list === undefined || Object.keys(list as object).length === 0);
}

const MESSAGE_POLICIES = ["File", "FallbackToLogsOnError"];
export const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];

function validateContainer(container: Container, path: string, pod: PodContext): readonly FieldError[] {
  const { name, image = "", terminationMessagePolicy = "", imagePullPolicy = "", securityContext } = container;
  const at = child(path, "name");
  return [
    ...(name === "" ? [requiredField(at)] : validateName(at, name, dns1123Label)),
    ...(image === "" ? [requiredField(child(path, "image"))] : []),
    ...validateChoice(terminationMessagePolicy, child(path, "terminationMessagePolicy"), MESSAGE_POLICIES),
    ...validatePorts(container.ports ?? [], child(path, "ports")),
    ...validateEnv(container.env ?? [], child(path, "env")),
    ...validateEnvFrom(container.envFrom ?? [], child(path, "envFrom")),
    ...validateMounts(container, path, pod.volumes),
    ...validateDevices(container, path, pod.volumes),
    ...validateChoice(imagePullPolicy, child(path, "imagePullPolicy"), PULL_POLICIES),
    ...validateContainerResources(container.resources ?? {}, child(path, "resources")),
    ...validateContainerClaims(container.resources?.claims ?? [], child(path, "resources.claims"), pod.claimNames),
    ...validateResizePolicy(container.resizePolicy ?? [], child(path, "resizePolicy"), pod.restartPolicy),
    ...(securityContext === undefined
      ? []
      : validateSecurityContext(securityContext, child(path, "securityContext"), pod.hostUsers)),
  ];
}

/** One of a closed set of values; required, because there is always a default. */
export function validateChoice(value: string, path: string, choices: readonly string[]): readonly FieldError[] {
  if (choices.includes(value)) return [];
  return [value === "" ? requiredField(path) : notSupported(path, value, choices)];
}

/** For pods only: Kubernetes does not check templates. */
export function validateImageWhitespace({ image = "" }: Container, path: string): readonly FieldError[] {
  if (image === image.trim()) return [];
  return [invalidField(child(path, "image"), image, "must not have leading or trailing whitespace")];
}

function validatePorts(ports: readonly ContainerPort[], path: string): readonly FieldError[] {
  const names = new Set<string>();
  return validateEach(ports, ({ name = "", containerPort, hostPort = 0, protocol = "" }, i) => {
    const at = index(path, i);
    const [nameAt, portAt, hostAt] = [child(at, "name"), child(at, "containerPort"), child(at, "hostPort")];
    const problems = name === "" ? [] : validateName(nameAt, name, portName);
    return [
      ...(name !== "" && problems.length === 0 ? validateUnique(name, nameAt, names) : problems),
      ...(containerPort === 0 ? [requiredField(portAt)] : validatePort(containerPort, portAt)),
      ...(hostPort === 0 ? [] : validatePort(hostPort, hostAt)),
      ...validateChoice(protocol, child(at, "protocol"), PROTOCOLS),
    ];
  });
}

function validatePort(port: number, path: string): readonly FieldError[] {
  return portNumber(port).map((problem) => invalidField(path, port, problem));
}

/** Host ports must be unique within the pod. */
function validateHostPorts(containers: readonly Container[], path: string): readonly FieldError[] {
  const used = new Set<string>();
  return validateEach(containers, ({ ports = [] }, i) =>
    validateEach(ports, ({ hostPort = 0, hostIP = "", protocol = "" }, portIndex) => {
      if (hostPort === 0) return [];
      const at = child(index(child(index(path, i), "ports"), portIndex), "hostPort");
      return validateUnique(`${protocol}/${hostIP}/${hostPort}`, at, used);
    }),
  );
}

/** Rules for lifecycle hooks and probes. */
function validateHooksAndProbes(container: Container, path: string, pod: PodContext): readonly FieldError[] {
  const { lifecycle, livenessProbe, readinessProbe, startupProbe } = container;
  const [live, ready, start] = HOOKS_AND_PROBES.slice(1).map((name) => child(path, name)) as [string, string, string];
  const errors: FieldError[] = [];
  for (const hook of ["postStart", "preStop"] as const) {
    const handler = lifecycle?.[hook];
    if (handler === undefined) continue;
    errors.push(...validateHandler(handler, child(path, `lifecycle.${hook}`), pod.gracePeriodSeconds));
  }
  if (livenessProbe !== undefined)
    errors.push(...validateProbe(livenessProbe, live), ...validateSuccessThreshold(livenessProbe, live));
  if (readinessProbe !== undefined) {
    errors.push(...validateProbe(readinessProbe, ready));
    const grace = readinessProbe.terminationGracePeriodSeconds;
    if (grace !== undefined) {
      const at = child(ready, "terminationGracePeriodSeconds");
      errors.push(invalidField(at, grace, "must not be set for readinessProbes"));
    }
  }
  if (startupProbe !== undefined)
    errors.push(...validateProbe(startupProbe, start), ...validateSuccessThreshold(startupProbe, start));
  return errors;
}

function validateSuccessThreshold(
  { successThreshold = 0 }: { readonly successThreshold?: number | undefined },
  path: string,
) {
  return successThreshold === 1 ? [] : [invalidField(child(path, "successThreshold"), successThreshold, "must be 1")];
}
