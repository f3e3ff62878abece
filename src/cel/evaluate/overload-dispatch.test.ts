import t from "tap";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile } from "../cel.ts";
import { createEnvironment } from "../environment.ts";

const environment = createEnvironment({ variables: {}, nameFormats });

t.test("a call without an overload for its values fails with the names that cel-go has", async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ["string([dyn(null)][0])", ": string(null_type)"],
    ["string([dyn({})][0])", ": string(map)"],
    ["timestamp([dyn(true)][0])", ": timestamp(bool)"],
    ["'a'.charAt(dyn('x'))", ": charAt(string, string)"],
    ["dyn(1).getHours()", ": getHours(int)"],
    ["dyn(duration('1h')).getFullYear()", ": getFullYear(google.protobuf.Duration)"],
    ["dyn([{}]).min()", ": min(list)"],
    ["quantity('1').compareTo(dyn(1))", ": compareTo(kubernetes.Quantity, int)"],
    // Operators have one implementation, for the types of the first argument that have the operation.
    ["dyn(true) + dyn(1)", ": _+_"],
    ["dyn({}) * dyn(2)", ": _*_"],
    ["dyn(1.5) % dyn(2.0)", ": _%_"],
    ["dyn(null) < dyn(null)", ": _<_"],
    ["-dyn([1])", ": -_"],
    ["size(dyn(1))", ": size"],
    ["dyn(1).matches(['a'][0])", ": matches"],
    ["dyn(1) + dyn('a')", ""],
    ["dyn('a') - dyn('b')", ""],
    ["dyn(1) < dyn('a')", ""],
    ["!dyn(1)", ""],
    ["-dyn('a')", ""],
    ["dyn(1).contains('a')", ""],
    ["dyn(1).matches('a')", ""],
    ["dyn(1).find('a')", ""],
    ["dyn('a').matches(dyn(1))", ""],
    ["dyn(1) in dyn(2)", ""],
  ];
  for (const [source, rest] of cases) {
    const { program } = compile(source, environment);
    t.equal(program?.evaluate({}).error?.message, `no such overload${rest}`, source);
  }
});
