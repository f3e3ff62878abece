/** Names of resources, classified: `cpu`, `hugepages-2Mi`, `example.com/gpu`. */
import { type FieldError, invalidUnquoted } from "../../../schema/validation/field-error.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import { qualifiedName } from "../../meta/validation/names.ts";

const CONTAINER_RESOURCES = new Set(["cpu", "memory", "ephemeral-storage"]);

/** Resources of quotas that count objects. */
const OBJECT_COUNTS = [
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
];

const STANDARD_RESOURCES = new Set([
  ...CONTAINER_RESOURCES,
  ...OBJECT_COUNTS,
  "requests.cpu",
  "requests.memory",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  "storage",
  "requests.storage",
]);

const HUGE_PAGES = "hugepages-";

export function isHugePages(name: string): boolean {
  return name.startsWith(HUGE_PAGES);
}

/** Resources that the spec may have for the pod as a whole. */
export function isPodLevelResource(name: string): boolean {
  return name === "cpu" || name === "memory" || isHugePages(name);
}

/** Names without a domain or with one of kubernetes.io. */
export function isKubernetesResource(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

/** Extended resources: names with another domain, which stay valid with the prefix `requests.` of quotas. */
export function isExtendedResource(name: string): boolean {
  return !isKubernetesResource(name) && !name.startsWith("requests.") && qualifiedName(`requests.${name}`).length === 0;
}

export function isStandardResource(name: string): boolean {
  return STANDARD_RESOURCES.has(name) || isHugePages(name) || name.startsWith(`requests.${HUGE_PAGES}`);
}

/** Resources of containers without a domain. */
export function isStandardContainerResource(name: string): boolean {
  return CONTAINER_RESOURCES.has(name) || isHugePages(name);
}

/** Extended resources and object counts are integers. */
export function isIntegerResource(name: string): boolean {
  return OBJECT_COUNTS.includes(name) || isExtendedResource(name);
}

/** Whether limits may exceed requests: not for huge pages and extended resources. */
export function isOvercommitAllowed(name: string): boolean {
  return isKubernetesResource(name) && !isHugePages(name);
}

/** Whether the quantity is a multiple of the page size in the name. */
export function isMultipleOfPageSize(name: string, amount: string): boolean {
  const size = parseQuantity(name.slice(HUGE_PAGES.length))?.nanos ?? 0n;
  return size > 0n && size % 1_000_000_000n === 0n && (parseQuantity(amount)?.nanos ?? 0n) % size === 0n;
}

/** Makes the error of a name that is not qualified. */
type InvalidName = (path: string, name: string, detail: string) => FieldError;

/** A qualified name; a name without a domain must be a standard resource. */
export function validateResourceName(
  name: string,
  path: string,
  invalidName: InvalidName = invalidUnquoted,
): readonly FieldError[] {
  const problems = qualifiedName(name).map((problem) => invalidName(path, name, problem));
  if (problems.length > 0 || name.includes("/") || isStandardResource(name)) return problems;
  return [invalidUnquoted(path, name, "must be a standard resource type or fully qualified")];
}

/** The name of a container's resource. */
export function validateContainerResourceName(
  name: string,
  path: string,
  invalidName: InvalidName = invalidUnquoted,
): readonly FieldError[] {
  const problems = validateResourceName(name, path, invalidName);
  if (!name.includes("/")) {
    if (isStandardContainerResource(name)) return problems;
    return [...problems, invalidUnquoted(path, name, "must be a standard resource for containers")];
  }
  if (isKubernetesResource(name) || isExtendedResource(name)) return problems;
  return [...problems, invalidUnquoted(path, name, "doesn't follow extended resource name standard")];
}
