import t from "tap";
import {
  canonicalElement,
  compareElements,
  fieldElement,
  formatElement,
  keyElement,
  valueElement,
} from "./path-element.ts";

t.test("elements are serialized as in Kubernetes", (t) => {
  t.equal(fieldElement("a.b/c"), "f:a.b/c");
  t.equal(
    keyElement([
      ["port", 80],
      ["protocol", "TCP"],
    ]),
    'k:{"port":80,"protocol":"TCP"}',
  );
  t.equal(keyElement([["on", true]]), 'k:{"on":true}');
  t.equal(valueElement("a"), 'v:"a"');
  t.equal(valueElement("a<b>&\u2028"), 'v:"a\\u003cb\\u003e\\u0026\\u2028"', "HTML special characters are escaped");
  t.end();
});

const spellings = [
  ["f:x", "f:x", ".x"],
  ['k:{ "b": 1, "a" : "x" }', 'k:{"a":"x","b":1}', '[a="x",b=1]'],
  ['v:  "\\u0061"', 'v:"a"', '[="a"]'],
  ["v:1.0", "v:1", "[=1]"],
  ["i:007", "i:7", "[7]"],
] as const;

t.test("canonicalElement() returns one text per element, formatElement() one for messages", (t) => {
  for (const [text, canonical, people] of spellings) {
    t.equal(canonicalElement(text), canonical);
    t.equal(formatElement(canonical), people);
  }
  t.equal(canonicalElement("x:later"), undefined, "of an unknown type");
  for (const text of ["", "f", "ab", "__proto__", "k:[]", "k:{", "v:{", "i:x", "i:"]) {
    t.throws(() => canonicalElement(text), SyntaxError, text);
  }
  t.end();
});

t.test("compareElements() sorts by type, then by name, keys or value", (t) => {
  const sorted = [
    ".",
    "f:a",
    "f:b",
    "f:\uffee",
    "f:\u{1f600}",
    'k:{"a":"x","b":1}',
    'k:{"a":"x","b":2}',
    'k:{"a":"y"}',
    'k:{"b":1}',
    "v:2",
    "v:10",
    'v:"a"',
    "v:true",
    "v:[]",
    "v:null",
    "i:2",
    "i:10",
  ];
  t.same([...sorted].reverse().sort(compareElements), sorted);
  t.end();
});
