/** Kubernetes' libraries, function by function. */
import t from "tap";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import { renderErrors } from "../parse/source.ts";

const environment = createEnvironment({ variables: {}, nameFormats, stored: true });

function evaluate(source: string): unknown {
  const compiled = compile(source, environment);
  if (compiled.program === undefined) {
    const { errors, stage } = compiled;
    return stage === "instantiation" ? `failed: ${errors[0]?.message}` : renderErrors(errors, source);
  }
  const { value, error } = compiled.program.evaluate({});
  return error === undefined ? value : `failed: ${error.message}`;
}

const holding: Readonly<Record<string, readonly string[]>> = {
  lists: [
    "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [b'a', b'b'].isSorted() && [false, true].isSorted()",
    "[1, 3].sum() == 4 && [1.5, 3.0].sum() == 4.5 && [1u].sum() == 1u && [duration('1m'), duration('1s')].sum() == duration('61s')",
    "[1].filter(x, x > 1).sum() == 0",
    "[1, 3].max() == 3 && ['a', 'b'].min() == 'a' && [timestamp('2020-01-01T00:00:00Z')].max().getFullYear() == 2020",
    "[1, 2, 2, 3].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(9) == -1 && [1].lastIndexOf(9) == -1",
    "sets.contains([1, 2, 3], [3, 1]) && !sets.contains([1], [2]) && sets.contains([1], [])",
    "sets.equivalent([1, 1, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
    "sets.intersects([1, 2], [2, 9]) && !sets.intersects([1], [])",
  ],
  regex: [
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
    "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '123 abc 456'.findAll('[0-9]+', 1) == ['123']",
    "'12'.findAll('[0-9]', 0) == [] && '12'.findAll('[0-9]', -1).size() == 2",
    "'foobar'.matches('o+b') && !'foobar'.matches('^o') && matches('a', 'a')",
  ],
  url: [
    "url('https://user:pass@example.com:80/path?query=val#fragment').getHost() == 'example.com:80'",
    "url('/absolute-path').getScheme() == '' && url('HTTPS://a').getScheme() == 'https'",
    "url('https://[::1]:80/').getHost() == '[::1]:80' && url('https://[::1]:80/').getHostname() == '::1'",
    "url('https://example.com:80/').getPort() == '80' && url('https://example.com/').getPort() == ''",
    "url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'",
    "url('https://example.com').getEscapedPath() == '' && url('/a%2Fb').getEscapedPath() == '/a%2Fb'",
    "url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
    "url('https://e/p?key with spaces=value+with%20spaces').getQuery() == {'key with spaces': ['value with spaces']}",
    "url('https://example.com/path?').getQuery() == {} && url('https://a/b?c#d') == url('https://a/b?c#d')",
    "isURL('https://user:pass@example.com:80/path?query=val#fragment') && isURL('/absolute-path')",
    "!isURL('https://a:b:c/') && !isURL('../relative-path') && !isURL('') && !isURL('https://a b/') && !isURL('/%zz')",
  ],
  ip: [
    "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP(':::1') && !isIP('010.0.0.1')",
    "!isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
    "ip('::1').family() == 6 && ip('1.2.3.4').family() == 4 && string(ip('2001:DB8::0:0:1')) == '2001:db8::1'",
    "ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')",
    "!ip.isCanonical('2001:db8::0:0:0:abcd')",
    "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('::1').isUnspecified()",
    "ip('127.0.0.1').isLoopback() && ip('::1').isLoopback() && !ip('192.168.0.1').isLoopback()",
    "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
    "ip('ff02::1').isLinkLocalMulticast() && !ip('fd00::1').isLinkLocalMulticast()",
    "ip('169.254.169.254').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast() && !ip('fd80::1').isLinkLocalUnicast()",
    "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast() && !ip('ff00::1').isGlobalUnicast()",
    "ip('1.2.3.4') == ip('1.2.3.4') && type(ip('1.2.3.4')) == net.IP",
  ],
  cidr: [
    "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) && !cidr('192.168.0.0/24').containsIP('192.168.1.1')",
    "cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24')) && !cidr('192.168.1.0/24').containsCIDR('192.168.2.0/24')",
    "!cidr('10.0.0.0/24').containsCIDR('10.0.0.0/8') && !cidr('10.0.0.0/8').containsIP('::1')",
    "cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24')",
    "cidr('192.168.0.1/24') != cidr('192.168.0.1/24').masked() && cidr('::1/128').prefixLength() == 128",
    "isCIDR('::1/128') && !isCIDR('192.168.0.0/33') && !isCIDR('::1/129') && !isCIDR('1.2.3.4') && !isCIDR('1.2.3.4/08')",
    "string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
  ],
  quantity: [
    "quantity('200M').compareTo(quantity('0.2G')) == 0 && quantity('200M') == quantity('0.2G')",
    "quantity('50M').isLessThan(quantity('50Mi')) && quantity('50Mi').isGreaterThan(quantity('50M'))",
    "quantity('50k').asInteger() == 50000 && quantity('50k').isInteger() && !quantity('0.5').isInteger()",
    "!quantity('9999999999999999999999999999999999999G').isInteger()",
    "quantity('50k').sub(20000).asApproximateFloat() == 30000.0 && quantity('1.5').asApproximateFloat() == 1.5",
    "quantity('50k').add(20) == quantity('50020') && quantity('50k').add(quantity('20k')) == quantity('70k')",
    "quantity('50k').sub(quantity('20k')) == quantity('30k') && sign(quantity('-1')) == -1 && sign(quantity('0')) == 0",
    "isQuantity('1.3Gi') && !isQuantity('1,3G') && !isQuantity('200K') && !isQuantity('Three') && isQuantity('Mi')",
  ],
  semver: [
    "semver('1.2.3').compareTo(semver('2.0.0')) == -1 && semver('1.2.3') == semver('1.2.3+build')",
    "semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))",
    "semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10')) && semver('1.0.0-a').isLessThan(semver('1.0.0-a.b'))",
    "isSemver('1.0.0') && !isSemver('v1.0') && !isSemver('01.0.0') && !isSemver('1.0.0-01') && !isSemver('hello')",
    "isSemver('v1.0', true) && semver('01.01.01', true) == semver('1.1.1') && semver('v2', true).major() == 2",
    "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
  ],
  formats: [
    "!format.dns1123Label().validate('my-label').hasValue() && format.dns1123Label().validate('No').value() == ['no label']",
    "format.named('uuid').hasValue() && !format.named('nothing').hasValue()",
    "!format.dns1123LabelPrefix().validate('my-label-').hasValue() && format.dns1123Label().validate('my-label-').hasValue()",
    "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue() && format.uuid().validate('x').hasValue()",
    "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('?').value() == ['invalid base64']",
    "!format.date().validate('2021-01-01').hasValue() && !format.datetime().validate('2021-01-01T00:00:00Z').hasValue()",
    "!format.uri().validate('http://example.com').hasValue() && format.uri().validate('a b').hasValue()",
    "format.named('labelValue').value() == format.labelValue()",
  ],
  strings: [
    "'hello mellow'.indexOf('ello', 2) == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1 && 'x'.indexOf('') == 0",
    "'😀a😀b'.indexOf('b') == 3 && '😀a😀b'.charAt(1) == 'a' && '😀a😀b'.substring(2, 4) == '😀b' && '😀'.size() == 1",
    "'😀a😀b'.lastIndexOf('😀') == 2 && '😀a😀b'.indexOf('😀', 1) == 2 && '😀a😀b'.lastIndexOf('😀', 1) == 0",
    "'hello'.replace('l', 'LL', 1) == 'heLLlo' && 'ab'.replace('', '-') == '-a-b-' && 'ab'.replace('', '-', 2) == '-a-b'",
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a'.split(',', 0) == []",
    "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && 'ab'.split('') == ['a', 'b']",
    "'TacoCÆt Xii'.lowerAscii() == 'tacocÆt xii' && 'tacoCæt'.upperAscii() == 'TACOCæT'",
    "' \\t\\u00a0x\\n'.trim() == 'x' && strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
    "'%s=%d %x %b %o %.2f'.format([dyn('a'), dyn(10), dyn(255), dyn(5), dyn(8), dyn(1.5)]) == 'a=10 ff 101 10 1.50'",
  ],
  comprehensions: [
    "[1, 2, 3].all(i, v, i < v) && {'a': 1}.exists(k, v, k == 'a' && v == 1) && [1, 1].existsOne(i, v, i == 1)",
    "[1, 2, 3].transformList(i, v, i % 2 == 0, v * 10) == [10, 30] && {'a': 1}.transformList(k, v, k) == ['a']",
    "[5, 6].transformMap(i, v, v * 2) == {0: 10, 1: 12} && {'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}",
    "{'a': 1}.transformMap(k, v, v > 1, v) == {}",
  ],
  optionals: [
    "optional.of(1).optMap(x, x + 1).orValue(0) == 2 && optional.none().orValue(5) == 5",
    "{'a': [1]}.?a[?0].orValue(0) == 1 && {'a': [1]}.?b[?0].orValue(7) == 7 && [1][?3].or(optional.of(2)).value() == 2",
    "optional.of([1]).optFlatMap(l, l[?0]).value() == 1 && !optional.ofNonZeroValue('').hasValue()",
    "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![1].filter(x, x > 1).first().hasValue()",
    "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]",
    "[?optional.none(), ?optional.of(1)] == [1] && {?'a': optional.of(1)} == {'a': 1}",
  ],
};

for (const [library, expressions] of Object.entries(holding)) {
  t.test(`evaluate() supports the library ${library}`, (t) => {
    for (const expression of expressions) t.equal(evaluate(expression), true, expression);
    t.end();
  });
}

t.test("evaluate() fails with cel-go's and Kubernetes' messages", (t) => {
  const failing: readonly (readonly [string, string])[] = [
    ["1 / 0 == 1", "division by zero"],
    ["1 % 0 == 1", "modulus by zero"],
    ["9223372036854775807 + 1 == 0", "integer overflow"],
    ["0u - 1u == 0u", "unsigned integer overflow"],
    ["[1][5] == 1", "index out of bounds: 5"],
    ["{'a': 1}['b'] == 1", "no such key: b"],
    ["{'a': 1}.b == 1", "no such key: b"],
    ["dyn(1) + 'a' == 'b'", "no such overload"],
    ["int('x') == 1", "type conversion error from 'string' to 'int'"],
    ["bool('constructor')", "type conversion error from 'string' to 'bool'"],
    ["bool('__proto__')", "type conversion error from 'string' to 'bool'"],
    ["double('constructor') == 1.0", "type conversion error from 'string' to 'double'"],
    ["[1].filter(x, x > 1).max() == 1", "max called on empty list"],
    ["optional.none().value() == 1", "optional.none() dereference"],
    ["{'a': 1, 'a': 2} == {}", "Failed with repeated key: a"],
    ["ip('::ffff:1.2.3.4').family() == 4", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'],
    [
      "url('../x').getHost() == ''",
      'URL parse error during conversion from string: parse "../x": invalid URI for request',
    ],
    [
      "quantity('Three').isInteger()",
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    ["semver('1.0').major() == 1", "No Major.Minor.Patch elements found"],
    ["'a'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"],
    ["'a'.matches(dyn('(') + '')", "error parsing regexp: missing closing ): `(`"],
    ["timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp('2020-01-01T00:00:00Z')", "timestamp overflow"],
    ["timestamp('2020-01-01T00:00:00Z').getHours('Nowhere') == 1", "unknown time zone Nowhere"],
  ];
  for (const [expression, message] of failing) t.equal(evaluate(expression), `failed: ${message}`, expression);
  t.end();
});

t.test("ip() and cidr() fail with the messages of Go's netip", (t) => {
  const addresses: readonly (readonly [string, string])[] = [
    ["", "unable to parse IP"],
    ["localhost", "unable to parse IP"],
    ["%eth0", "missing IPv6 address"],
    ["10.0.0", "IPv4 address too short"],
    ["10.0.0.1.0", "IPv4 address too long"],
    ["10.0.0.256", "IPv4 field has value >255"],
    ["10.0.0.01", "IPv4 field has octet with leading zero"],
    ["10..0.1", 'IPv4 field must have at least one digit (at ".0.1")'],
    ["10.0.0.", 'IPv4 field must have at least one digit (at ".")'],
    ["10.0.0.x", 'unexpected character (at "x")'],
    ["fe80::1%", "zone must be a non-empty string"],
    ["2001:db8:::68", 'each colon-separated field must have at least one digit (at ":68")'],
    ["1::2::3", 'multiple :: in address (at ":3")'],
    ["12345::", 'each group must have 4 or less digits (at "12345::")'],
    ["1:2:3", "address string too short"],
    ["1:2:", 'colon must be followed by more characters (at ":")'],
    ["1:g", 'each colon-separated field must have at least one digit (at "g")'],
    ["1 :2", 'unexpected character, want colon (at " :2")'],
    ["1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'],
    ["1:2:3:4::5:6:7:8", "the :: must expand to at least one field of zeros"],
    ["1:10.0.0.1", 'embedded IPv4 address must replace the final 2 fields of the address (at "10.0.0.1")'],
    ["::10.0.0.256", "IPv4 field has value >255"],
  ];
  const conversion = "parse error during conversion from string:";
  t.equal(
    evaluate("ip('\\x01').family() == 4"),
    `failed: IP Address "\\x01" ${conversion} ParseAddr("\\x01"): unable to parse IP`,
    "quoted as in Go",
  );
  for (const [address, reason] of addresses) {
    const quoted = JSON.stringify(address);
    const message = `IP Address ${quoted} ${conversion} ParseAddr(${quoted}): ${reason}`;
    t.equal(evaluate(`ip(${quoted}).family() == 4`), `failed: ${message}`, address);
  }
  const blocks: readonly (readonly [string, string])[] = [
    ["10.0.0.0", "no '/'"],
    ["10.0.0.0/", 'bad bits after slash: ""'],
    ["10.0.0.0/08", 'bad bits after slash: "08"'],
    ["10.0.0.0/33", "prefix length out of range"],
    ["::/129", "prefix length out of range"],
    ["fe80::1%eth0/64", "IPv6 zones cannot be present in a prefix"],
    ["10.0.0/8", 'ParseAddr("10.0.0"): IPv4 address too short'],
  ];
  for (const [block, reason] of blocks) {
    const message = `network address ${conversion} network address ${conversion} netip.ParsePrefix("${block}"): ${reason}`;
    t.equal(evaluate(`cidr('${block}').prefixLength() == 8`), `failed: ${message}`, block);
  }
  t.equal(
    evaluate("ip('fe80::1%eth0').family() == 6"),
    'failed: IP address "fe80::1%eth0" with zone value is not allowed',
  );
  t.equal(
    evaluate("cidr('::ffff:10.0.0.0/104').prefixLength() == 8"),
    `failed: network address ${conversion} IPv4-mapped IPv6 address "::ffff:10.0.0.0/104" is not allowed`,
  );
  t.end();
});

t.test("compile() allows libraries of this version only in stored expressions", (t) => {
  const environmentForNew = createEnvironment({ variables: {}, nameFormats });
  const { errors } = compile("isSemver('1.0.0')", environmentForNew);
  t.equal(errors?.[0]?.message, "undeclared reference to 'isSemver' (in container '')");
  t.end();
});

t.test("format() formats numbers as Go's packages for texts do", (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ["'%f'.format([1234567.0])", "1,234,567.000000"],
    ["'%.2f'.format([-1234567.891])", "-1,234,567.89"],
    ["'%.0f %.0f'.format([2.5, 3.5])", "2 4"],
    ["'%e'.format([1234566.5])", "1.234566×10⁰⁶"],
    ["'%.1e'.format([1234.5678])", "1.234568×10⁰³"],
    ["'%.20e'.format([1234.5678])", "       1.234568×10⁰³"],
    ["'%e'.format(['-Infinity'])", "    -∞"],
    ["'%s'.format([1.0 / 0.0])", "+Inf"],
    ["'%s'.format([[1.0 / 0.0, 1.5]])", '["+Inf", 1.500000]'],
    ["'%s'.format([{1: 'a', 10: 'b', 2: 'c'}])", '{1:"a", 10:"b", 2:"c"}'],
    ["'%s'.format(dyn(['a', 'b']))", "a"],
    ["'%d'.format(dyn([1.0 / 0.0]))", "decimal clause can only be used on integers, was given double"],
    ["'%f'.format(dyn([1]))", "fixed-point clause can only be used on doubles, was given int"],
    ["'%.99999999999999999999f'.format(dyn([1.5]))", "value out of range"],
  ];
  for (const [source, text] of cases) t.ok(String(evaluate(source)).endsWith(text), `${source}: ${evaluate(source)}`);
  t.end();
});

t.test("a quantity is an integer if Kubernetes stores it as one", (t) => {
  const integers = "0 -5 00012 1k 1e3 1Ki 10Ti 123456789012345678 1E";
  for (const text of integers.split(" ")) t.equal(evaluate(`quantity('${text}').isInteger()`), true, text);
  const others = "1000m 1.0 0.0 1.5Gi 1.0Gi 8Ei 100Ti 1234567890123456789 9223372036854775807 10E";
  for (const text of others.split(" ")) t.equal(evaluate(`quantity('${text}').isInteger()`), false, text);
  t.equal(evaluate("quantity('0.5').add(quantity('0.5')).isInteger()"), false);
  t.equal(evaluate("quantity('5').sub(3).asInteger()"), 2n);
  t.equal(evaluate("quantity('1P').add(quantity('1E')).isInteger()"), true);
  t.end();
});
