/**
 * Fuzzes CEL: any text is rejected, or compiles, has a cost estimate, and evaluates to a value or an error within its
 * budget.
 */

import { nameFormats } from "../testing/cel/name-formats.ts";
import { everything, fuzz, sample } from "../testing/schema/fuzz-harness.ts";
import { toCelValue, toDynamicCelValue } from "./adapter/json-value.ts";
import { celTypeOf } from "./adapter/schema-type.ts";
import { compile } from "./cel.ts";
import { createEnvironment } from "./environment.ts";
import { renderErrors } from "./parse/source.ts";
import { dynType, intType } from "./values/types.ts";

const self = celTypeOf(everything) ?? dynType;
const environment = createEnvironment({ variables: { self, d: dynType, x: intType }, nameFormats, stored: true });
const unchecked = createEnvironment({
  variables: { self, d: dynType, x: intType },
  nameFormats,
  stored: true,
  unchecked: true,
});
const values = { self: toCelValue(everything, sample), d: toDynamicCelValue(sample), x: 3n };
const BUDGET = 20_000;

class Refused extends Error {}

function run(source: string, among: typeof environment): string {
  const { program, errors } = compile(source, among);
  if (program === undefined) throw new Refused(renderErrors(errors, source));
  const { estimate } = program;
  if (!(estimate.min >= 0 && estimate.max >= estimate.min)) throw new Error("an estimate that is none");
  const { cost, error } = program.evaluate(values, { budget: BUDGET });
  if (!(cost >= 0) || (cost > BUDGET && error?.costExceeded !== true)) throw new Error(`a cost of ${cost}`);
  return error?.message ?? "a value";
}

fuzz({
  name: "cel",
  samples: [
    "self.count <= self.long && self.items.all(i, i.name.matches('^[a-z]+$') && has(i.port))",
    "self.items.map(i, i.name).filter(n, n != '').join(', ') == self.words.join('-') || d.text.size() > x",
    "self.?self.?text.orValue('none').split('n', 2)[?0].optMap(v, v + 'x').hasValue() ? 1 : [1, 2][x % 2]",
    "timestamp('2020-01-01T00:00:00Z') + duration('1h30m') > self.at && self.at.getHours('Europe/Berlin') in [1, 2u, 3.5]",
    "{'a': [1, b'x', null, true]}.exists(k, v, k == 'a' && v.size() == 4) && {1: 2}.transformMap(k, v, v > 1, v * k)[1] == 2",
    "'%s %d %.2f %x'.format([d.text, d.count, d.ratio, 255]) == url('https://a:1/b?c=d').getQuery()['c'][0]",
    "quantity('1Gi').add(quantity('1M')).isGreaterThan(quantity('5')) && cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))",
    "semver('1.2.3').isLessThan(semver('v2', true)) && !format.dns1123Label().validate(self.text).hasValue()",
    "sets.contains(self.words, ['one']) && self.words.isSorted() && [1, 2].sum() == 3 && self.raw == d.raw",
    "r'\\d' + \"\\u00e9\" + '''a\nb''' == string(b'\\xff') || type(x) == int || int('12') + int(1.5) > -9223372036854775808",
  ].map((text) => Buffer.from(text)),
  words: [
    ..."|| && ! - + * / % == != < <= in ? : . .? [? [ ] ( ) { } , ' \" ''' r' b' `".split(" "),
    ..."self d x self.items self.words self.labels self.self d.raw true false null 0 1u 1.5 1e308 0x7f []".split(" "),
    ..."has( .all(i, .exists(i, .map(i, .filter(i, .exists_one(i, .transformList(i,v, .optMap(v, .size() dyn(".split(
      " ",
    ),
    ..."optional.none() optional.of( .orValue( type( string( int( uint( double( bytes( .matches( .find( .split(".split(
      " ",
    ),
    ".replace('',",
    ".format([",
    "duration('1s')",
    "9223372036854775807",
    " // comment\n",
    "\u{1f600}",
    "\n",
  ],
  read(input) {
    const source = Buffer.from(input).toString("utf8");
    try {
      run(source, unchecked);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    return run(source, environment);
  },
  isRefusal: (error) => error instanceof Refused,
});
