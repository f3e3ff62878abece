/** Rules for priority levels: concurrency limits and queuing. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child } from "../../../schema/value/field-path.ts";
import { validateConditions } from "../condition-validation.ts";
import { mandatoryPriorityLevels } from "../mandatory-configuration.ts";
import {
  type LimitedPriorityLevelConfiguration,
  type LimitResponse,
  type PriorityLevelConfiguration,
  type PriorityLevelConfigurationSpec,
  priorityLevelConfigurationSpec,
  type QueuingConfiguration,
} from "./schema.ts";

const QUEUES_MAX = 10_000_000;
/** The maximum number of hash bits to deal a hand of queues with. */
const HASH_BITS_MAX = 60;

export function validatePriorityLevel(object: PriorityLevelConfiguration): readonly FieldError[] {
  const { metadata, spec = { type: "" }, status } = object;
  const name = metadata?.name ?? "";
  return [
    ...validateSpec(name, spec, "spec"),
    ...validateMandatory(name, spec, "spec"),
    ...validateConditions(status?.conditions ?? []),
  ];
}

function validateSpec(name: string, spec: PriorityLevelConfigurationSpec, path: string): readonly FieldError[] {
  const { type, limited, exempt } = spec;
  const [typeAt, limitedAt, exemptAt] = [child(path, "type"), child(path, "limited"), child(path, "exempt")];
  const errors: FieldError[] = [];
  if ((name === "exempt") !== (type === "Exempt")) {
    errors.push(invalidField(typeAt, type, "type must be 'Exempt' if and only if name is 'exempt'"));
  }
  switch (type) {
    case "Exempt":
      if (limited !== undefined) errors.push(forbiddenField(limitedAt, "must be nil if the type is not Limited"));
      return [...errors, ...(exempt === undefined ? [] : validateShares(exempt, exemptAt))];
    case "Limited":
      if (exempt !== undefined) errors.push(forbiddenField(exemptAt, "must be nil if the type is Limited"));
      return limited === undefined
        ? [...errors, requiredField(limitedAt, "must not be empty when type is Limited")]
        : [...errors, ...validateLimited(limited, limitedAt)];
    default:
      return [...errors, notSupported(typeAt, type, ["Exempt", "Limited"])];
  }
}

/** The shares of the level `exempt` may be changed. */
function validateMandatory(name: string, spec: PriorityLevelConfigurationSpec, path: string): readonly FieldError[] {
  const fixed = Object.hasOwn(mandatoryPriorityLevels, name) ? mandatoryPriorityLevels[name] : undefined;
  if (fixed === undefined) return [];
  const shown = goStruct(priorityLevelConfigurationSpec, spec);
  if (name === "exempt") {
    const detail = `spec of '${name}' except the 'spec.exempt' field must equal the fixed value`;
    return deepEqual({ ...spec, exempt: undefined }, { ...fixed, exempt: undefined })
      ? []
      : [invalidField(path, shown, detail)];
  }
  return deepEqual(spec, fixed) ? [] : [invalidField(path, shown, `spec of '${name}' must equal the fixed value`)];
}

interface Shares {
  readonly nominalConcurrencyShares?: number | undefined;
  readonly lendablePercent?: number | undefined;
}

function validateShares(shares: Shares, path: string): readonly FieldError[] {
  const { nominalConcurrencyShares = 0 } = shares;
  const at = child(path, "nominalConcurrencyShares");
  return [
    ...(nominalConcurrencyShares < 0
      ? [invalidField(at, nominalConcurrencyShares, "must be a non-negative integer")]
      : []),
    ...validatePercent(shares, path),
  ];
}

function validatePercent({ lendablePercent = 0 }: Shares, path: string): readonly FieldError[] {
  if (lendablePercent >= 0 && lendablePercent <= 100) return [];
  return [invalidField(child(path, "lendablePercent"), lendablePercent, "must be between 0 and 100, inclusive")];
}

function validateLimited(limited: LimitedPriorityLevelConfiguration, path: string): readonly FieldError[] {
  const { nominalConcurrencyShares, limitResponse = { type: "" }, borrowingLimitPercent = 0 } = limited;
  return [
    ...validateShares({ nominalConcurrencyShares }, path),
    ...validateResponse(limitResponse, child(path, "limitResponse")),
    ...validatePercent(limited, path),
    ...(borrowingLimitPercent < 0
      ? [
          invalidField(
            child(path, "borrowingLimitPercent"),
            borrowingLimitPercent,
            "if specified, must be a non-negative integer",
          ),
        ]
      : []),
  ];
}

function validateResponse({ type, queuing }: LimitResponse, path: string): readonly FieldError[] {
  const at = child(path, "queuing");
  switch (type) {
    case "Queue":
      return queuing === undefined
        ? [requiredField(at, "must not be empty if limited.limitResponse.type is Limited")]
        : validateQueuing(queuing, at);
    case "Reject":
      return queuing === undefined
        ? []
        : [forbiddenField(at, "must be nil if limited.limitResponse.type is not Limited")];
    default:
      return [notSupported(child(path, "type"), type, ["Queue", "Reject"])];
  }
}

function validateQueuing(queuing: QueuingConfiguration, path: string): readonly FieldError[] {
  const { queues = 0, handSize = 0, queueLengthLimit = 0 } = queuing;
  const errors: FieldError[] = [];
  if (queueLengthLimit <= 0) {
    errors.push(invalidField(child(path, "queueLengthLimit"), queueLengthLimit, "must be positive"));
  }
  if (queues <= 0) errors.push(invalidField(child(path, "queues"), queues, "must be positive"));
  else if (queues > QUEUES_MAX) {
    errors.push(invalidField(child(path, "queues"), queues, `must not be greater than ${QUEUES_MAX}`));
  }
  const problem = handProblem(handSize, queues);
  return problem === undefined ? errors : [...errors, invalidField(child(path, "handSize"), handSize, problem)];
}

/** Shuffle sharding deals a hand of queues to each flow from one hash, which must have enough bits for all hands. */
function handProblem(handSize: number, queues: number): string | undefined {
  if (handSize <= 0) return "must be positive";
  if (handSize > queues) return `should not be greater than queues (${queues})`;
  if (Math.ceil(Math.log2(queues) * handSize) <= HASH_BITS_MAX) return undefined;
  return `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${HASH_BITS_MAX}`;
}
