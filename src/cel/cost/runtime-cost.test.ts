/** Evaluation costs: the figures of cel-go with constant folding, and of Kubernetes' libraries. */
import t from "tap";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import { EntryMap } from "../values/entry-map.ts";
import { Timestamp } from "../values/time-value.ts";
import { bytesType, dynType, intType, listType, mapType, stringType, timestampType } from "../values/types.ts";
import { ArrayList, fail, type Value } from "../values/value.ts";

const environment = createEnvironment({
  variables: {
    input: listType(intType),
    map: mapType(stringType, stringType),
    nested: mapType(stringType, mapType(stringType, stringType)),
    s: stringType,
    short: stringType,
    bytes: bytesType,
    time: timestampType,
    x: intType,
    d: dynType,
  },
  nameFormats,
  stored: true,
});
const values: Readonly<Record<string, Value>> = {
  input: new ArrayList([1n, 2n]),
  map: EntryMap.of([["key", "v"]]),
  nested: EntryMap.of([["a", EntryMap.of([["b", "c"]])]]),
  s: "x".repeat(500),
  short: "idc",
  bytes: new Uint8Array(500),
  time: new Timestamp(0n),
  x: 1n,
  d: new ArrayList([1n]),
};

const costs: Readonly<Record<string, number>> = {
  '"Hello World!"': 0,
  input: 1,
  "map['key']": 2,
  "map.key": 2,
  "input[0]": 2,
  "input[x]": 2,
  "map[short.substring(0, 0) + 'key']": 5,
  "nested.a.b": 3,
  "has(map.key)": 1,
  "has(nested.a.b)": 2,
  "input.map(i, i)[0]": 30,
  "time.getFullYear()": 2,
  "[1, 2, 3]": 0,
  "[x, 2, 3]": 11,
  "{'a': x}": 31,
  "[1, 2, 3].all(i, true)": 10,
  "input.all(i, true)": 8,
  "input.exists(i, i == 2)": 14,
  "input.exists_one(i, i == 2)": 9,
  "[1, 2, 3, 4, 5].filter(i, i % 2 == 0)": 42,
  "[1, 2, 3, 4, 5].map(i, i)": 66,
  "s.matches('[0-9]')": 103,
  "'123'.matches('[0-9]')": 2,
  "true || x == 1": 0,
  "x == 2 || x == 3 || x == 4 || x == 5": 8,
  "1 < 2": 1,
  "x in [1, 2, 3]": 4,
  "short in ['a', 'b']": 1,
  "x in input": 4,
  "true ? 1 : 2": 0,
  "x > 2 ? x : x": 2,
  "(x > 2 ? map : map).key": 3,
  "s == s": 52,
  "s + s": 102,
  "string(bytes)": 51,
  "s.contains(s)": 2502,
  "short.startsWith(s)": 3,
  "s.size()": 2,
  "dyn(x)": 2,
  // Kubernetes' functions
  "[1, 2, 3, 4, 5].sum()": 5,
  "['0123456789'].isSorted()": 1,
  "s.lowerAscii()": 51,
  "s.replace('x', 'y')": 101,
  "s.split('')": 101,
  "['a', 'b'].join(',')": 1,
  "s.find('[0-9]+')": 103,
  "ip('192.168.0.1')": 2,
  "ip('2001:db8:3333:4444:5555:6666:7777:8888')": 4,
  "ip('192.168.0.1') == ip('192.168.0.1')": 5,
  "ip.isCanonical('192.168.0.1')": 3,
  "cidr('192.168.0.0/16')": 2,
  "cidr('192.168.0.0/16').masked()": 3,
  "cidr('192.168.0.0/16').containsIP('192.169.0.1')": 5,
  "cidr('192.168.0.0/16').containsIP(ip('192.169.0.1'))": 5,
  "cidr('192.168.0.0/16').containsCIDR('192.168.0.0/16')": 7,
  "url('https:://kubernetes.io/').getHost()": 4,
  "quantity('12345')": 1,
  "quantity('1').add(quantity('2'))": 3,
  "semver('1.2.3').major()": 2,
  "sets.contains([1, 2], [1])": 3,
  "sets.equivalent([1, 2], [1])": 5,
  "format.dns1123Label().validate('my-name')": 9,
  "optional.of(x).orValue(2)": 2,
};

t.test("evaluate() charges the same cost as Kubernetes", (t) => {
  for (const [source, cost] of Object.entries(costs)) {
    const { program, errors } = compile(source, environment);
    const result = (program ?? fail(errors?.[0]?.message ?? "")).evaluate(values);
    t.equal(result.cost, cost, source);
  }
  t.end();
});

t.test("evaluate() costs at most the estimate, except for accesses to computed values", (t) => {
  for (const source of Object.keys(costs)) {
    const { program } = compile(source, environment);
    const { cost } = program!.evaluate(values);
    t.ok(cost <= program!.estimate.max + 1, `${source}: ${cost} of ${program!.estimate.max}`);
  }
  t.end();
});
