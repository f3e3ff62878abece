/** Rules of Kubernetes 1.33 for one container of a pod; types, enums and presence are the schema's business. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notFoundField,
  notSupported,
  requiredField,
} from "../../schema/field-error.ts";
import { child, index, key } from "../../schema/field-path.ts";
import {
  configMapKey,
  dns1123Label,
  dns1123Subdomain,
  environmentName,
  portName,
  portNumber,
  qualifiedName,
} from "../meta/names.ts";
import { compareQuantities, parseQuantity } from "../meta/quantity.ts";
import type { Container } from "./container.ts";
import type { Probe } from "./probe.ts";
import { validateHandler, validateProbe } from "./probe-validation.ts";

type Lifecycle = NonNullable<Container["lifecycle"]>;

/** What a container's rules need to know of the pod around it. */
export interface PodSurroundings {
  readonly volumes: ReadonlySet<string>;
  readonly hostNetwork: boolean;
  readonly gracePeriodSeconds: number;
}

export type ContainerRole = "main" | "init" | "sidecar";

export function validateContainer(
  container: Container,
  path: string,
  role: ContainerRole,
  pod: PodSurroundings,
): readonly FieldError[] {
  return [
    ...nameAndImage(container, path),
    ...restartPolicy(container, path, role),
    ...(container.ports ?? []).flatMap((port, i) => validatePort(port, index(child(path, "ports"), i), pod)),
    ...duplicatePortNames(container, child(path, "ports")),
    ...(container.env ?? []).flatMap((variable, i) => validateEnv(variable, index(child(path, "env"), i))),
    ...(container.envFrom ?? []).flatMap((source, i) => validateEnvFrom(source, child(path, "envFrom"), i)),
    ...validateMounts(container, path, pod),
    ...validateProbes(container, path, role),
    ...validateLifecycle(container, path, role, pod),
    ...validateResources(container.resources, child(path, "resources")),
    ...validateSecurity(container, child(path, "securityContext")),
  ];
}

function nameAndImage(container: Container, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { name, image = "" } = container;
  if (!name) errors.push(requiredField(child(path, "name")));
  else errors.push(...dns1123Label(name).map((problem) => invalidField(child(path, "name"), name, problem)));
  if (image === "") errors.push(requiredField(child(path, "image")));
  else if (image !== image.trim()) {
    errors.push(invalidField(child(path, "image"), image, "must not have leading or trailing whitespace"));
  }
  return errors;
}

function restartPolicy(container: Container, path: string, role: ContainerRole): FieldError[] {
  const policy = container.restartPolicy;
  if (policy === undefined) return [];
  const field = child(path, "restartPolicy");
  if (role === "main") return [forbiddenField(field, "may not be set for non-init containers")];
  return policy === "Always" ? [] : [notSupported(field, policy, ["Always"])];
}

type Port = NonNullable<Container["ports"]>[number];

function validatePort(port: Port, path: string, pod: PodSurroundings): FieldError[] {
  const errors: FieldError[] = [];
  const { name = "", containerPort, hostPort = 0 } = port;
  if (name !== "") {
    errors.push(...portName(name).map((problem) => invalidField(child(path, "name"), name, problem)));
  }
  if (!containerPort) errors.push(requiredField(child(path, "containerPort")));
  else {
    const field = child(path, "containerPort");
    errors.push(...portNumber(containerPort).map((problem) => invalidField(field, containerPort, problem)));
  }
  if (hostPort !== 0) {
    const field = child(path, "hostPort");
    errors.push(...portNumber(hostPort).map((problem) => invalidField(field, hostPort, problem)));
    if (pod.hostNetwork && hostPort !== containerPort) {
      errors.push(invalidField(field, hostPort, "must match `containerPort` when `hostNetwork` is true"));
    }
  }
  return errors;
}

function duplicatePortNames(container: Container, path: string): FieldError[] {
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const [i, { name = "" }] of (container.ports ?? []).entries()) {
    if (name === "") continue;
    if (seen.has(name)) errors.push(duplicateField(child(index(path, i), "name"), name));
    seen.add(name);
  }
  return errors;
}

type EnvVar = NonNullable<Container["env"]>[number];
const ENV_SOURCES = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"] as const;

function validateEnv(variable: EnvVar, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { name, value = "", valueFrom } = variable;
  if (!name) errors.push(requiredField(child(path, "name")));
  else errors.push(...environmentName(name).map((problem) => invalidField(child(path, "name"), name, problem)));
  if (valueFrom === undefined) return errors;
  const from = child(path, "valueFrom");
  const given = ENV_SOURCES.filter((source) => valueFrom[source] !== undefined);
  if (given.length === 0) {
    errors.push(
      invalidField(
        from,
        "",
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
      ),
    );
  } else if (value !== "") {
    errors.push(invalidField(from, "", "may not be specified when `value` is not empty"));
  } else if (given.length > 1) {
    errors.push(invalidField(from, "", "may not have more than one field specified at a time"));
  }
  for (const source of ["configMapKeyRef", "secretKeyRef"] as const) {
    const reference = valueFrom[source];
    if (reference !== undefined) errors.push(...validateKeyReference(reference, child(from, source)));
  }
  if (valueFrom.fieldRef !== undefined && !valueFrom.fieldRef.fieldPath) {
    errors.push(requiredField(child(child(from, "fieldRef"), "fieldPath")));
  }
  if (valueFrom.resourceFieldRef !== undefined && !valueFrom.resourceFieldRef.resource) {
    errors.push(requiredField(child(child(from, "resourceFieldRef"), "resource")));
  }
  return errors;
}

function validateKeyReference(
  reference: { readonly name?: string | undefined; readonly key: string },
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const { name = "" } = reference;
  errors.push(...dns1123Subdomain(name).map((problem) => invalidField(child(path, "name"), name, problem)));
  if (!reference.key) errors.push(requiredField(child(path, "key")));
  else {
    errors.push(
      ...configMapKey(reference.key).map((problem) => invalidField(child(path, "key"), reference.key, problem)),
    );
  }
  return errors;
}

type EnvFrom = NonNullable<Container["envFrom"]>[number];

function validateEnvFrom(source: EnvFrom, list: string, position: number): FieldError[] {
  const errors: FieldError[] = [];
  const path = index(list, position);
  const { prefix = "", configMapRef, secretRef } = source;
  if (prefix !== "") {
    errors.push(...environmentName(prefix).map((problem) => invalidField(child(path, "prefix"), prefix, problem)));
  }
  for (const [field, reference] of [["configMapRef", configMapRef] as const, ["secretRef", secretRef] as const]) {
    if (reference === undefined) continue;
    const name = child(child(path, field), "name");
    if (!reference.name) errors.push(requiredField(name));
    else errors.push(...dns1123Subdomain(reference.name).map((problem) => invalidField(name, reference.name, problem)));
  }
  if (configMapRef === undefined && secretRef === undefined) {
    errors.push(invalidField(list, "", "must specify one of: `configMapRef` or `secretRef`"));
  } else if (configMapRef !== undefined && secretRef !== undefined) {
    errors.push(invalidField(list, "", "may not have more than one field specified at a time"));
  }
  return errors;
}

function validateMounts(container: Container, path: string, pod: PodSurroundings): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  // Kubernetes leaves the index out of the paths of these three fields.
  const list = child(path, "volumeMounts");
  for (const [i, mount] of (container.volumeMounts ?? []).entries()) {
    const at = index(list, i);
    if (!mount.name) errors.push(requiredField(child(at, "name")));
    if (!pod.volumes.has(mount.name)) errors.push(notFoundField(child(at, "name"), mount.name));
    if (!mount.mountPath) errors.push(requiredField(child(at, "mountPath")));
    if (paths.has(mount.mountPath))
      errors.push(invalidField(child(at, "mountPath"), mount.mountPath, "must be unique"));
    paths.add(mount.mountPath);
    errors.push(...validateSubPath(mount.subPath ?? "", child(list, "subPath")));
    errors.push(...validateSubPath(mount.subPathExpr ?? "", child(list, "subPathExpr")));
    if (mount.subPath && mount.subPathExpr) {
      errors.push(
        invalidField(child(at, "subPathExpr"), mount.subPathExpr, "subPathExpr and subPath are mutually exclusive"),
      );
    }
    if (mount.mountPropagation === "Bidirectional" && container.securityContext?.privileged !== true) {
      const detail = "Bidirectional mount propagation is available only to privileged containers";
      errors.push(forbiddenField(child(list, "mountPropagation"), detail));
    }
  }
  return errors;
}

function validateSubPath(subPath: string, path: string): FieldError[] {
  if (subPath === "") return [];
  if (subPath.startsWith("/")) return [invalidField(path, subPath, "must be a relative path")];
  return subPath.split("/").includes("..") ? [invalidField(path, subPath, "must not contain '..'")] : [];
}

function validateProbes(container: Container, path: string, role: ContainerRole): FieldError[] {
  const errors: FieldError[] = [];
  const probes: readonly (readonly [string, Probe | undefined])[] = [
    ["livenessProbe", container.livenessProbe],
    ["readinessProbe", container.readinessProbe],
    ["startupProbe", container.startupProbe],
  ];
  for (const [name, probe] of probes) {
    if (probe === undefined) continue;
    const at = child(path, name);
    if (role === "init") {
      errors.push(forbiddenField(at, "may not be set for init containers without restartPolicy=Always"));
      continue;
    }
    errors.push(...validateProbe(probe, at));
    if (name !== "readinessProbe" && probe.successThreshold !== undefined && probe.successThreshold !== 1) {
      errors.push(invalidField(child(at, "successThreshold"), probe.successThreshold, "must be 1"));
    }
  }
  return errors;
}

function validateLifecycle(
  container: Container,
  path: string,
  role: ContainerRole,
  pod: PodSurroundings,
): FieldError[] {
  if (container.lifecycle === undefined) return [];
  const at = child(path, "lifecycle");
  if (role === "init") return [forbiddenField(at, "may not be set for init containers without restartPolicy=Always")];
  const errors: FieldError[] = [];
  for (const hook of ["postStart", "preStop"] as const satisfies readonly (keyof Lifecycle)[]) {
    const handler = container.lifecycle[hook];
    if (handler !== undefined) errors.push(...validateHandler(handler, child(at, hook), pod.gracePeriodSeconds));
  }
  return errors;
}

const STANDARD_RESOURCES = new Set(["cpu", "memory", "ephemeral-storage"]);

export function validateResources(resources: Container["resources"], path: string): readonly FieldError[] {
  if (resources === undefined) return [];
  const errors: FieldError[] = [];
  for (const list of ["limits", "requests"] as const) {
    for (const [name, amount] of Object.entries(resources[list] ?? {})) {
      const at = key(child(path, list), name);
      errors.push(...resourceName(name, at));
      const quantity = parseQuantity(amount);
      if (quantity !== undefined && quantity.nanos < 0n) {
        errors.push(invalidField(at, amount, "must be greater than or equal to 0"));
      }
    }
  }
  for (const [name, amount] of Object.entries(resources.requests ?? {})) {
    const limit = resources.limits?.[name];
    const [wanted, most] = [parseQuantity(amount), limit === undefined ? undefined : parseQuantity(limit)];
    if (wanted === undefined || most === undefined || compareQuantities(wanted, most) <= 0) continue;
    const at = child(path, "requests");
    errors.push(invalidField(at, amount, `must be less than or equal to ${name} limit of ${limit}`));
  }
  return errors;
}

function resourceName(name: string, at: string): FieldError[] {
  const errors = qualifiedName(name).map((problem) => invalidField(at, name, problem));
  if (errors.length > 0 || name.includes("/")) return errors;
  if (STANDARD_RESOURCES.has(name) || name.startsWith("hugepages-")) return [];
  const standard = name === "storage" || name === "pods";
  return [
    ...(standard ? [] : [invalidField(at, name, "must be a standard resource type or fully qualified")]),
    invalidField(at, name, "must be a standard resource for containers"),
  ];
}

const MAX_ID = 2147483647;

function validateSecurity(container: Container, path: string): FieldError[] {
  const security = container.securityContext;
  if (security === undefined) return [];
  const errors: FieldError[] = [];
  for (const field of ["runAsUser", "runAsGroup"] as const) {
    const id = security[field];
    if (id !== undefined && (id < 0 || id > MAX_ID)) {
      errors.push(invalidField(child(path, field), id, `must be between 0 and ${MAX_ID}, inclusive`));
    }
  }
  if (security.allowPrivilegeEscalation === false) {
    const refused = "cannot set `allowPrivilegeEscalation` to false and";
    if (security.privileged === true) errors.push(invalidField(path, security, `${refused} \`privileged\` to true`));
    const added: readonly string[] = security.capabilities?.add ?? [];
    if (added.includes("CAP_SYS_ADMIN")) {
      errors.push(invalidField(path, security, `${refused} \`capabilities.Add\` CAP_SYS_ADMIN`));
    }
  }
  return errors;
}
