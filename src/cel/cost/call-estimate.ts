/** Estimates the cost of calls and the size of their results from the sizes of the arguments. */
import type { Expr } from "../parse/ast.ts";
import type { Type } from "../values/types.ts";
import { add, fixed, multiply, type Range, scale, unknownRange } from "./range.ts";
import { CHECK_COST, LIST_COST, OBJECT_COST, REGEX, TRAVERSAL } from "./runtime-cost.ts";

export interface EstimatedArg {
  readonly type: Type;
  readonly expr: Expr;
  readonly size: Range | undefined;
  /** The size of a list's items, when the list comes from a schema. */
  readonly elementSize: () => Range;
}

export interface CallEstimate {
  readonly cost: Range;
  readonly size?: Range;
}

interface Call {
  readonly id: string;
  readonly target: EstimatedArg | undefined;
  readonly args: readonly EstimatedArg[];
}

type Estimate = (call: Call) => CallEstimate | undefined;

export function estimateCall(
  name: string,
  id: string,
  target: EstimatedArg | undefined,
  args: readonly EstimatedArg[],
): CallEstimate {
  const call = { id, target, args };
  return byFunction[name]?.(call) ?? byOverload[id]?.(call) ?? { cost: fixed(1) };
}

function sizeOf(arg: EstimatedArg | undefined): Range {
  return arg?.size ?? unknownRange;
}

/** Traverses an argument once or several times. */
function traverseArgument(index: number, times = 1): Estimate {
  return ({ args }) => ({ cost: scale(sizeOf(args[index]), times * TRAVERSAL) });
}

/** Traverses the receiver; the result is a string of at most the same size. */
const traverseTarget: Estimate = ({ target }) => {
  const size = sizeOf(target);
  return { cost: scale(size, TRAVERSAL), size };
};

const estimateOverItems: Estimate = ({ target }) => {
  if (target?.type.kind !== "list") return { cost: scale(sizeOf(target), TRAVERSAL) };
  const { kind } = target.type.element;
  const texts = kind === "string" || kind === "bytes";
  const each = texts ? add(fixed(1), scale(target.elementSize(), TRAVERSAL)) : fixed(1);
  return { cost: multiply(sizeOf(target), each) };
};

const estimateSelector: Estimate = ({ args }) => {
  const length = sizeOf(args[0]);
  const requirements = scale(scale(length, 0.5), LIST_COST + OBJECT_COST);
  return { cost: add(add(fixed(LIST_COST), scale(length, TRAVERSAL)), requirements) };
};

const estimateMatch: Estimate = ({ target, args }) => {
  const text = scale(add(sizeOf(target), fixed(1)), TRAVERSAL);
  return { cost: multiply(text, scale(sizeOf(args[0]), REGEX)) };
};

const estimateFind: Estimate = (call) => {
  return { cost: estimateMatch(call)!.cost, size: { min: 0, max: sizeOf(call.target).max } };
};

const estimateReplace: Estimate = ({ target, args }) => {
  const text = sizeOf(target);
  const [old, by] = [sizeOf(args[0]), sizeOf(args[1])];
  const longest = countReplacements(text.max, old.min, by.max <= old.min);
  const shortest = countReplacements(text.min, old.max, old.max <= by.min);
  const size = {
    min: multiply(fixed(shortest.times), by).min + shortest.kept,
    max: multiply(fixed(longest.times), by).max + longest.kept,
  };
  return { cost: scale(text, 2 * TRAVERSAL), size };
};

/** The number of replacements, and the size of the text that remains. */
function countReplacements(
  text: number,
  old: number,
  unchanged: boolean,
): { readonly times: number; readonly kept: number } {
  if (old === 0) return { times: text + 1, kept: text };
  return unchanged ? { times: 0, kept: text } : { times: Math.ceil(text / old), kept: 0 };
}

const estimateSplit: Estimate = ({ target, args }) => {
  const size = sizeOf(target);
  const limit = args[1]?.expr;
  const most = limit?.kind === "literal" && typeof limit.value === "bigint" ? Number(limit.value) : size.max;
  return { cost: scale(size, 2 * TRAVERSAL), size: { min: 0, max: most < 0 ? size.max : most } };
};

const estimateJoin: Estimate = ({ target, args }) => {
  const list = sizeOf(target);
  let size = multiply(list, target?.elementSize() ?? unknownRange);
  const separators = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
  if (args.length > 0) size = add(size, multiply(sizeOf(args[0]), separators));
  return { cost: scale(size, TRAVERSAL), size };
};

/** An address has 4 or 16 bytes. */
const addressSize: Range = { min: 4, max: 16 };

const estimateContainsIp: Estimate = ({ id, args }) => {
  const compared = scale(add(addressSize, addressSize), TRAVERSAL);
  const parsed = id === "cidr_contains_ip_string" ? scale(sizeOf(args[0]), TRAVERSAL) : fixed(0);
  return { cost: add(compared, parsed) };
};

const estimateContainsCidr: Estimate = ({ id, args }) => {
  const compared = scale(add(addressSize, addressSize), TRAVERSAL);
  const masked = add(scale(addressSize, TRAVERSAL), fixed(1));
  const parsed = id === "cidr_contains_cidr_string" ? scale(sizeOf(args[0]), TRAVERSAL) : fixed(0);
  return { cost: add(add(compared, masked), parsed) };
};

/** The length of the longest pattern of the named formats. */
const FORMAT_LENGTH = 128;

const estimateValidate: Estimate = ({ args }) => {
  return { cost: scale(scale(sizeOf(args[0]), TRAVERSAL), FORMAT_LENGTH * REGEX) };
};

const estimateEscape: Estimate = ({ args }) => {
  const size = sizeOf(args[0]);
  return { cost: scale(size, TRAVERSAL), size };
};

/** Values of library types are compared in constant time. */
const estimateEquality: Estimate = ({ args }) => {
  const [a, b] = args;
  if (a?.type.kind === "opaque" && b?.type.kind === "opaque" && a.type.name.includes(".")) return { cost: fixed(1) };
  return undefined;
};

const byFunction: Readonly<Record<string, Estimate>> = {
  check: () => ({ cost: fixed(CHECK_COST) }),
  fieldSelector: estimateSelector,
  labelSelector: estimateSelector,
  isSorted: estimateOverItems,
  sum: estimateOverItems,
  max: estimateOverItems,
  min: estimateOverItems,
  indexOf: estimateOverItems,
  lastIndexOf: estimateOverItems,
  url: estimateEscape,
  lowerAscii: traverseTarget,
  upperAscii: traverseTarget,
  substring: traverseTarget,
  trim: traverseTarget,
  replace: estimateReplace,
  split: estimateSplit,
  join: estimateJoin,
  find: estimateFind,
  findAll: estimateFind,
  cidr: traverseArgument(0),
  isIP: traverseArgument(0),
  isCIDR: traverseArgument(0),
  ip: (call) => (call.id === "cidr_ip" ? { cost: fixed(1) } : traverseArgument(0)(call)),
  "ip.isCanonical": traverseArgument(0, 2),
  containsIP: estimateContainsIp,
  containsCIDR: estimateContainsCidr,
  quantity: traverseArgument(0),
  isQuantity: traverseArgument(0),
  semver: traverseArgument(0),
  isSemver: traverseArgument(0),
  validate: estimateValidate,
  "_==_": estimateEquality,
};

const estimateConcatenation: Estimate = ({ args }) => {
  const size = add(sizeOf(args[0]), sizeOf(args[1]));
  return { cost: scale(size, TRAVERSAL), size };
};

/** A comparison traverses at most the smaller value. */
const estimateComparison: Estimate = ({ args }) => {
  const max = Math.min(sizeOf(args[0]).max, sizeOf(args[1]).max);
  return { cost: scale({ min: max > 0 ? 1 : 0, max }, TRAVERSAL) };
};

function estimateSetOperation(times: number): Estimate {
  return ({ args }) => ({ cost: add(scale(multiply(sizeOf(args[0]), sizeOf(args[1])), times), fixed(1)) });
}

const byOverload: Readonly<Record<string, Estimate>> = {
  string_format: ({ target }) => ({ cost: scale(sizeOf(target), TRAVERSAL) }),
  string_to_bytes: ({ args }) => {
    const size = sizeOf(args[0]);
    // A character has at most 4 bytes.
    return { cost: scale(size, TRAVERSAL), size: { min: size.min, max: size.max * 4 } };
  },
  bytes_to_string: ({ args }) => {
    const size = sizeOf(args[0]);
    return { cost: scale(size, TRAVERSAL), size: { min: Math.floor(size.min / 4), max: size.max } };
  },
  strings_quote: ({ args }) => {
    const size = sizeOf(args[0]);
    return { cost: scale(size, TRAVERSAL), size: { min: size.min + 2, max: size.max * 2 + 2 } };
  },
  starts_with_string: traverseArgument(0),
  ends_with_string: traverseArgument(0),
  in_list: ({ args }) => ({ cost: sizeOf(args[1]) }),
  matches_string: estimateMatch,
  contains_string: ({ target, args }) => {
    return { cost: multiply(scale(sizeOf(target), TRAVERSAL), scale(sizeOf(args[0]), TRAVERSAL)) };
  },
  add_string: estimateConcatenation,
  add_bytes: estimateConcatenation,
  add_list: ({ args }) => ({ cost: fixed(1), size: add(sizeOf(args[0]), sizeOf(args[1])) }),
  equals: estimateComparison,
  not_equals: estimateComparison,
  less_string: estimateComparison,
  less_equals_string: estimateComparison,
  greater_string: estimateComparison,
  greater_equals_string: estimateComparison,
  less_bytes: estimateComparison,
  less_equals_bytes: estimateComparison,
  greater_bytes: estimateComparison,
  greater_equals_bytes: estimateComparison,
  list_sets_contains_list: estimateSetOperation(1),
  list_sets_intersects_list: estimateSetOperation(1),
  list_sets_equivalent_list: estimateSetOperation(2),
};
