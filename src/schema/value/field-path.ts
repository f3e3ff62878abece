/** Paths of fields as Kubernetes writes them: `spec.containers[0].env[1].name`, `metadata.labels[app/x]`. */

/** `child("spec", "nodeName")` is `spec.nodeName`; an empty parent adds no dot. */
export function child(parent: string, name: string): string {
  return parent === "" ? name : `${parent}.${name}`;
}

export function index(parent: string, position: number): string {
  return `${parent}[${position}]`;
}

export function key(parent: string, name: string): string {
  return `${parent}[${name}]`;
}

/** Joins steps to a path: names become `.name`, numbers `[n]`. */
export function joinPath(steps: readonly (string | number)[]): string {
  let path = "";
  for (const step of steps) {
    if (typeof step === "number") path += `[${step}]`;
    else path = child(path, step);
  }
  return path;
}

/**
 * Splits a path: `spec.containers[0].name` → `["spec", "containers", 0, "name"]`. Brackets around anything but a number
 * contain a key, which can contain dots.
 */
export function splitPath(path: string): (string | number)[] {
  const steps: (string | number)[] = [];
  for (const match of path.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)) {
    const inside = match[1];
    if (inside === undefined) steps.push(match[2] ?? "");
    else steps.push(/^\d+$/.test(inside) ? Number(inside) : inside);
  }
  return steps;
}
