import t from "tap";
import { podKind } from "../../core/pod/kind.ts";
import {
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  requirementsOf,
  splitFieldSelector,
} from "./selector.ts";

function selects(selector: string, labels: Readonly<Record<string, string>>): boolean {
  return matchesLabels(parseLabelSelector(selector), labels);
}

t.test("parseLabelSelector() and matchesLabels() agree with Kubernetes", async (t) => {
  const web = { app: "web", tier: "front", "example.com/n": "5" };
  for (const yes of [
    "",
    "app",
    "app=web",
    "app==web",
    "app = web , tier=front",
    "app!=db",
    "other!=x",
    "!other",
    "app in (db, web)",
    "app notin (db)",
    "other notin (db)",
    "example.com/n>4",
    "example.com/n<6",
  ]) {
    t.ok(selects(yes, web), yes);
  }
  for (const no of [
    "app=db",
    "!app",
    "other",
    "app in (db)",
    "app notin (web)",
    "example.com/n>5",
    "app>1",
    "other=",
  ]) {
    t.notOk(selects(no, web), no);
  }
  t.ok(selects("x=", { x: "" }));
  t.ok(selects("x in (,a)", { x: "" }));
});

t.test("parseLabelSelector() throws Kubernetes' messages", async (t) => {
  const found: Readonly<Record<string, string>> = {
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "!": "unable to parse requirement: found '', expected: identifier",
    "a===b": "unable to parse requirement: found '=', expected: identifier",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a>1.5":
      "unable to parse requirement: values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer",
    ",": "found ',', expected: !, identifier, or 'end of string'",
    "=b": "found '=', expected: !, identifier, or 'end of string'",
    "a,,b": "found ',', expected: identifier after ','",
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    "a==b==c": "found '==', expected: ',' or 'end of string'",
    "a=b,": "found '', expected: identifier after ','",
    "a=b)": "found ')', expected: ',' or 'end of string'",
    "a in": "unable to parse requirement: found '' expected: '('",
    "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
    "a in (=)": "unable to parse requirement: found '=', expected: ',', ')' or identifier",
    "a in ((a))": "unable to parse requirement: found '(', expected: ',', ')' or identifier",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "a in (b c)": "unable to parse requirement: found 'c', expected: ',' or ')'",
    "a in (b=c)": "unable to parse requirement: found '=', expected: ',' or ')'",
    "a in (b,": "unable to parse requirement: found '', expected: ',', or identifier",
    "a in (b,=)": "unable to parse requirement: found '=', expected: ',', or identifier",
    "a notin (,": "unable to parse requirement: found '', expected: ',', or identifier",
    "a in (b))": "found ')', expected: ',' or 'end of string'",
    "!a=b": "found '=', expected: ',' or 'end of string'",
    "!!a": "unable to parse requirement: found '!', expected: identifier",
    "a!b": "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
    "a gt 5": "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt",
    "a>=5": "unable to parse requirement: found '=', expected: identifier",
    "a>": "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer",
    "a>9223372036854775808":
      "unable to parse requirement: values[0]: Invalid value: \"9223372036854775808\": for 'Gt', 'Lt' operators, the value must be an integer",
  };
  for (const [text, message] of Object.entries(found)) {
    t.throws(() => parseLabelSelector(text), { message }, text);
  }
  const long = "v".repeat(64);
  t.throws(() => parseLabelSelector(`a=${long}`), /values\[0\]\[a\]: Invalid value: "v+": must be no more than 63 /);
  t.throws(() => parseLabelSelector("-a"), /^unable to parse requirement: <nil>: Invalid value: "-a": name part must /);
});

t.test("parseLabelSelector() validates a key before what follows, and reports all values", async (t) => {
  for (const rest of ["", "=", " in (", " b", "=b=c", " in (-c)"]) {
    t.throws(
      () => parseLabelSelector(`-a${rest}`),
      /^unable to parse requirement: <nil>: Invalid value: "-a": name part/,
    );
  }
  t.throws(
    () => parseLabelSelector("a in (-c,b,-b)"),
    /^unable to parse requirement: \[values\[0\]\[a\]: Invalid value: "-b": .*, values\[1\]\[a\]: Invalid value: "-c": /,
  );
  t.throws(
    () => parseLabelSelector("a>-x"),
    /requirement: \[values\[0\]: Invalid value: "-x": for .*, values\[0\]\[a\]: /,
  );
  const long = `-${"v".repeat(64)}`;
  t.throws(() => parseLabelSelector(`a=${long}`), /: must be no more than 63 characters; a valid label must be /);
});

t.test("parseLabelSelector() reads sets with empty and repeated values", async (t) => {
  const sets: Readonly<Record<string, readonly string[]>> = {
    "()": [""],
    "(,)": [""],
    "(b,)": ["", "b"],
    "(,b)": ["", "b"],
    "(c,,b)": ["", "b", "c"],
    "(b,b)": ["b"],
    "(in,notin)": ["in", "notin"],
  };
  for (const [text, values] of Object.entries(sets)) {
    t.same(parseLabelSelector(`a in ${text}`), [{ key: "a", operator: "In", values }], text);
    t.same(parseLabelSelector(`a notin${text}`), [{ key: "a", operator: "NotIn", values }], text);
  }
});

t.test("splitFieldSelector() sorts the terms and unescapes their values", async (t) => {
  const term = (field: string, value: string, equal = true) => ({ field, value, equal });
  t.same(splitFieldSelector("b=1,,a!=2,c==3,"), [term("a", "2", false), term("b", "1"), term("c", "3")]);
  t.same(splitFieldSelector("a=\\\\x\\,y\\=z"), [term("a", "\\x,y=z")]);
  t.same(splitFieldSelector(","), []);
  t.same(splitFieldSelector("=b"), [term("", "b")]);
  const invalid: Readonly<Record<string, string>> = {
    "a=b=c": "invalid field selector: unescaped character in value: 61",
    "a==b==c": "invalid field selector: unescaped character in value: 61",
    "a===b": "invalid field selector: unescaped character in value: 61",
    "a=b\\c": "invalid field selector: invalid escape sequence: \\c",
    "a=b\\": "invalid field selector: invalid escape sequence: \\",
    "a=1,b": "invalid selector: 'a=1,b'; can't understand 'b'",
    "z=1=2,b": "invalid selector: 'z=1=2,b'; can't understand 'b'",
    "!a": "invalid selector: '!a'; can't understand '!a'",
    "a in (b)": "invalid selector: 'a in (b)'; can't understand 'a in (b)'",
    "a>1": "invalid selector: 'a>1'; can't understand 'a>1'",
  };
  for (const [text, message] of Object.entries(invalid)) {
    t.throws(() => splitFieldSelector(text), { message }, text);
  }
});

t.test("parseLabelSelector() rejects invalid selectors", async (t) => {
  for (const bad of [
    "=",
    "a=b=c",
    "a in b",
    "a in (",
    "a,",
    "!",
    "a b",
    "a=-x",
    "/x=1",
    "a".repeat(9000),
    "(",
    "a in (b",
  ]) {
    t.throws(() => parseLabelSelector(bad), { name: "StatusError" }, bad.slice(0, 20));
  }
});

t.test("requirementsOf() converts a LabelSelector", async (t) => {
  const requirements = requirementsOf({
    matchLabels: { app: "web" },
    matchExpressions: [{ key: "tier", operator: "NotIn", values: ["back"] }],
  });
  t.ok(matchesLabels(requirements, { app: "web" }));
  t.notOk(matchesLabels(requirements, { app: "web", tier: "back" }));
  t.notOk(matchesLabels(requirements, undefined));
});

t.test("parseFieldSelector() accepts the fields of the kind only", async (t) => {
  const pod = { metadata: { name: "a", namespace: "b" }, spec: { containers: [], nodeName: "n1" } };
  const selects = (text: string) => matchesFields(parseFieldSelector(text, podKind), pod, podKind);
  t.ok(selects("spec.nodeName=n1,metadata.name==a"));
  t.notOk(selects("spec.nodeName!=n1"));
  t.ok(selects("status.phase="), "absent is empty");
  t.throws(() => parseFieldSelector("spec.foo=1", podKind), /field label not supported: spec.foo/);
  t.throws(() => parseFieldSelector("nonsense", podKind), /can't understand 'nonsense'/);
  t.throws(() => parseFieldSelector("__proto__=1", podKind), /field label not supported/);
});
