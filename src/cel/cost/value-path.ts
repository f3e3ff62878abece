/** Where the value of an expression stands in the type of the variable that it is read from. */
import type { Type } from "../values/types.ts";

/** `@items` of a list, `@keys` and `@values` of a map, `@indices`, else the name of a member. */
type Step = string;

interface Steps {
  readonly all: Step[];
  readonly capacity: number;
}

/**
 * A path as cel-go keeps it: a slice of Go. Paths that were extended from the same path share their memory while it has
 * room, so that the second one changes the last step of the first. Estimates depend on it, and with them which rules
 * Kubernetes accepts: in `a.all(x, x.names.all(n, n == x.id))` the size of `x.names` is that of `x.id` afterwards.
 */
export class ValuePath {
  readonly #steps: Steps;
  readonly #length: number;

  private constructor(steps: Steps, length: number) {
    this.#steps = steps;
    this.#length = length;
  }

  /** A path whose first step is usually the name of a variable. */
  static of(first: Step): ValuePath {
    return new ValuePath({ all: [first], capacity: 1 }, 1);
  }

  append(step: Step): ValuePath {
    const { all, capacity } = this.#steps;
    if (this.#length < capacity) {
      all[this.#length] = step;
      return new ValuePath(this.#steps, this.#length + 1);
    }
    return new ValuePath({ all: [...this.steps(), step], capacity: 2 * capacity }, this.#length + 1);
  }

  /** A path with memory of its own. */
  copyWith(step: Step): ValuePath {
    return new ValuePath({ all: [...this.steps(), step], capacity: this.#length + 1 }, this.#length + 1);
  }

  steps(): readonly Step[] {
    return this.#steps.all.slice(0, this.#length);
  }
}

/** The path of a part. A value without a path is the start of one: its parts are searched in the root. */
export function extend(path: ValuePath | undefined, step: Step): ValuePath {
  return path === undefined ? ValuePath.of(step) : path.append(step);
}

/** The type at a path; undefined where the types have no such part. The first step stands for `root`. */
export function typeAt(root: Type, [, ...steps]: readonly Step[]): Type | undefined {
  let type: Type | undefined = root;
  for (const step of steps) {
    if (type === undefined) return undefined;
    type = partOf(type, step);
  }
  return type;
}

function partOf(type: Type, step: Step): Type | undefined {
  switch (type.kind) {
    case "list":
      return step === "@items" || step === "@values" ? type.element : undefined;
    case "map":
      if (step === "@keys") return type.key;
      return step === "@items" || step === "@values" ? type.value : type.memberSize;
    case "object":
      return type.field(step);
    default:
      return undefined;
  }
}

/** `self.items[*].tags`, `self.labels.*`. */
export function formatPath(root: string, [, ...steps]: readonly Step[]): string {
  const parts = steps.map((step) => {
    if (step === "@items") return "[*]";
    return step.startsWith("@") ? ".*" : `.${step}`;
  });
  return root + parts.join("");
}
