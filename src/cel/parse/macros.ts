/** Expands macros, as cel-go does, while parsing. */
import { ACCUMULATOR, type Call, type Comprehension, call, type Expr, identifier, type Loop, literal } from "./ast.ts";
import { SyntaxIssue } from "./lexer.ts";

interface MacroCall {
  readonly offset: number;
  readonly name: string;
  readonly target?: Expr;
  readonly args: readonly Expr[];
}

type Expand = (macro: MacroCall) => Expr;

const quantifiers = { all: "all", exists: "exists", exists_one: "existsOne", existsOne: "existsOne" } as const;
type Quantifier = keyof typeof quantifiers;

/** By name and number of arguments; `x.` marks macros with a receiver. */
const macros: ReadonlyMap<string, Expand> = new Map<string, Expand>([
  ["has/1", expandHas],
  ...(Object.keys(quantifiers) as Quantifier[]).flatMap((name): [string, Expand][] => [
    [`x.${name}/2`, expandQuantifier],
    [`x.${name}/3`, expandQuantifier],
  ]),
  ["x.map/2", expandList],
  ["x.map/3", expandList],
  ["x.filter/2", expandFilter],
  ["x.transformList/3", expandList2],
  ["x.transformList/4", expandList2],
  ["x.transformMap/3", expandMap],
  ["x.transformMap/4", expandMap],
  ["x.transformMapEntry/3", expandMap],
  ["x.transformMapEntry/4", expandMap],
  ["x.optMap/2", expandOptional],
  ["x.optFlatMap/2", expandOptional],
]);

function macroKey(name: string, args: number, member: boolean): string {
  return `${member ? "x." : ""}${name}/${args}`;
}

export function isMacro(name: string, args: number, member: boolean): boolean {
  return macros.has(macroKey(name, args, member));
}

/** Returns the expansion, or the error of an invalid argument. */
export function expandMacro(macro: MacroCall): Expr | SyntaxIssue {
  const expand = macros.get(macroKey(macro.name, macro.args.length, macro.target !== undefined))!;
  try {
    return expand(macro);
  } catch (error) {
    if (error instanceof SyntaxIssue) return error;
    throw error;
  }
}

function expandHas({ offset, args }: MacroCall): Expr {
  const [arg] = args;
  if (arg?.kind !== "select" || arg.test) {
    throw new SyntaxIssue("invalid argument to has() macro", arg?.offset ?? offset);
  }
  return { ...arg, offset, test: true };
}

function expandQuantifier(macro: MacroCall): Expr {
  const { offset, args } = macro;
  const two = args.length === 3;
  const names = two
    ? iterationVariables(macro)
    : { variable: variableName(args[0]!, "argument must be a simple name") };
  const predicate = args.at(-1)!;
  const kind = quantifiers[macro.name as Quantifier];
  const loop: Loop = { kind, predicate };
  const accumulator = identifier(offset, ACCUMULATOR);
  if (kind === "existsOne") {
    const more = call(offset, "_+_", [accumulator, literal(offset, 1n)]);
    return comprehension(macro, names, loop, {
      init: literal(offset, 0n),
      step: call(offset, "_?_:_", [predicate, more, accumulator]),
      result: call(offset, "_==_", [accumulator, literal(offset, 1n)]),
    });
  }
  const undecided = kind === "all" ? accumulator : call(offset, "!_", [accumulator]);
  return comprehension(macro, names, loop, {
    init: literal(offset, kind === "all"),
    condition: call(offset, "@not_strictly_false", [undecided]),
    step: call(offset, kind === "all" ? "_&&_" : "_||_", [accumulator, predicate]),
  });
}

function expandList(macro: MacroCall): Expr {
  const name = variableName(macro.args[0]!, "argument is not an identifier");
  return collect(macro, { variable: name }, macro.args.slice(1));
}

function expandFilter(macro: MacroCall): Expr {
  const [item, filter] = macro.args;
  const name = variableName(item!, "argument is not an identifier");
  return collect(macro, { variable: name }, [filter!, item!]);
}

function expandList2(macro: MacroCall): Expr {
  return collect(macro, iterationVariables(macro), macro.args.slice(2));
}

function collect(macro: MacroCall, names: IterationVariables, [filter, transform]: readonly Expr[]): Expr {
  const { offset } = macro;
  const accumulator = identifier(offset, ACCUMULATOR);
  const item = transform ?? filter!;
  const list: Expr = { kind: "list", offset, elements: [item], optional: new Set() };
  const more = call(offset, "_+_", [accumulator, list]);
  const loop: Loop = { kind: "list", transform: item, ...(transform && { filter: filter! }) };
  return comprehension(macro, names, loop, {
    init: { kind: "list", offset, elements: [], optional: new Set() },
    step: transform === undefined ? more : call(offset, "_?_:_", [filter!, more, accumulator]),
  });
}

function expandMap(macro: MacroCall): Expr {
  const { offset } = macro;
  const names = iterationVariables(macro);
  const transform = macro.args.at(-1)!;
  const filter = macro.args.length === 4 ? macro.args[2]! : undefined;
  const accumulator = identifier(offset, ACCUMULATOR);
  const entries = macro.name === "transformMapEntry";
  const entry = entries ? [transform] : [identifier(offset, names.variable), transform];
  const more = call(offset, "cel.@mapInsert", [accumulator, ...entry]);
  const loop: Loop = { kind: entries ? "entries" : "map", transform, ...(filter && { filter }) };
  return comprehension(macro, names, loop, {
    init: { kind: "map", offset, entries: [] },
    step: filter === undefined ? more : call(offset, "_?_:_", [filter, more, accumulator]),
  });
}

/** `x.optMap(v, e)`: none for none, otherwise `e` with `v` bound to the value. */
function expandOptional(macro: MacroCall): Expr {
  const { offset, name, args } = macro;
  const target = macro.target!;
  const variable = args[0]!;
  if (variable.kind !== "identifier") {
    throw new SyntaxIssue(`${name}() variable name must be a simple identifier`, variable.offset);
  }
  const value = call(offset, "value", [], target);
  const bound: Comprehension = {
    kind: "comprehension",
    offset,
    range: { kind: "list", offset, elements: [], optional: new Set() },
    variable: "#unused",
    init: value,
    condition: literal(offset, false),
    step: identifier(offset, variable.name),
    result: args[1]!,
    loop: { kind: "bind", name: variable.name },
  };
  const some = name === "optMap" ? call(offset, "optional.of", [bound]) : bound;
  return call(offset, "_?_:_", [call(offset, "hasValue", [], target), some, call(offset, "optional.none", [])]);
}

interface IterationVariables {
  readonly variable: string;
  readonly variable2?: string;
}

function iterationVariables(macro: MacroCall): IterationVariables {
  const [first, second] = macro.args;
  const names = {
    variable: variableName(first!, "argument must be a simple name"),
    variable2: variableName(second!, "argument must be a simple name"),
  };
  if (names.variable === names.variable2) {
    throw new SyntaxIssue(`duplicate variable name: ${names.variable}`, second!.offset);
  }
  return names;
}

function variableName(expr: Expr, otherwise: string): string {
  if (expr.kind !== "identifier" || expr.name.startsWith(".")) throw new SyntaxIssue(otherwise, expr.offset);
  // The name of cel-go's accumulator variable, which is reserved so that rules are portable.
  if (expr.name === "__result__") {
    throw new SyntaxIssue("iteration variable overwrites accumulator variable", expr.offset);
  }
  return expr.name;
}

interface ComprehensionParts {
  readonly init: Expr;
  readonly condition?: Call;
  readonly step: Expr;
  readonly result?: Expr;
}

function comprehension(
  macro: MacroCall,
  names: IterationVariables,
  loop: Loop,
  body: ComprehensionParts,
): Comprehension {
  return {
    kind: "comprehension",
    offset: macro.offset,
    range: macro.target!,
    ...names,
    init: body.init,
    condition: body.condition ?? literal(macro.offset, true),
    step: body.step,
    result: body.result ?? identifier(macro.offset, ACCUMULATOR),
    loop,
  };
}
