/** Without their bounds, these searches and loops take minutes. */
import t from "tap";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import { stringType } from "../values/types.ts";
import { characterOf, countCharacters, search, searchLast, splitText, unitOf } from "./characters.ts";

const LENGTH = 200_000;
const repetitive = "a".repeat(LENGTH);
const environment = createEnvironment({ variables: { text: stringType, wide: stringType }, nameFormats, stored: true });

t.test("searches for repetitive texts take linear time", (t) => {
  const half = "a".repeat(LENGTH / 2);
  t.equal(search(repetitive, `b${half}`), -1);
  t.equal(search(`${repetitive}b`, `${half}b`), LENGTH / 2);
  t.equal(search(repetitive, half, 7), 7);
  t.equal(searchLast(repetitive, `${half}b`), -1);
  t.equal(searchLast(`${repetitive}b`, half), LENGTH / 2);
  t.equal(searchLast(`${repetitive}b`, half, 7), 7);
  t.same(splitText(`b${half}${half}b${half}`, `b${half}`), ["", half, ""]);
  t.equal(splitText(repetitive, half).length, 3);
  t.end();
});

t.test("positions of characters are those of an array of them", (t) => {
  for (const text of ["", "ab", "\u{1F600}a\u{1F600}", "\ud83da\ude00", `\u{1F600}b\ud83d`.repeat(30)]) {
    const letters = [...text];
    t.equal(countCharacters(text), letters.length);
    let unit = 0;
    for (const [index, letter] of letters.entries()) {
      t.equal(unitOf(text, index), unit);
      t.equal(characterOf(text, unit), index);
      unit += letter.length;
    }
    t.equal(unitOf(text, letters.length), text.length);
  }
  t.equal(characterOf("ab", -1), -1);
  t.end();
});

t.test("loops over functions that scan a long text are cancelled", (t) => {
  const wide = "\u{1F600}".repeat(20_000);
  const loops = ["text.charAt(9)", "wide.charAt(9)", "wide.substring(9)", "string(wide.size())"];
  const searches = ["wide.indexOf('b')", "wide.lastIndexOf('b')"].map((each) => `string(${each})`);
  for (const each of [...loops, ...searches]) {
    const { program } = compile(`text.split('').all(x, ${each} != 'b')`, environment);
    const { error } = program!.evaluate({ text: repetitive, wide });
    t.equal(error?.message, "operation cancelled: actual cost limit exceeded", each);
  }
  const { value } = compile("wide.size() == 20000 && wide.charAt(9) == '\u{1F600}'", environment).program!.evaluate({
    wide,
    text: "",
  });
  t.equal(value, true, "the next evaluation can scan as much again");
  t.end();
});

t.test("a regular expression whose automaton has many states is refused for a long text", (t) => {
  const expression = "text.matches('[ab]*a[ab]{100}[cd]') || size(text.findAll('a(.*c)?')) > 0";
  const { error } = compile(expression, environment).program!.evaluate({ text: repetitive, wide: "" });
  t.equal(error?.message, "the text is too long for the regular expression");
  t.end();
});

t.test("a query of one parameter many times is read in linear time", (t) => {
  const { program } = compile("url('http://a/?' + text).getQuery()['a'].size()", environment);
  t.equal(program!.evaluate({ text: "a=b&".repeat(LENGTH) }).value, BigInt(LENGTH));
  t.end();
});
