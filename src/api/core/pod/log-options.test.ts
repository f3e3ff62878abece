import t from "tap";
import { renderFieldError } from "../../../schema/validation/field-error.ts";
import { decodeLogQuery, type LogQuery, OptionError, validateLogQuery } from "./log-options.ts";

const decode = (query: string): LogQuery => decodeLogQuery(new URLSearchParams(query));

function reject(query: string): string {
  try {
    decode(query);
    return "";
  } catch (error) {
    return error instanceof OptionError ? error.message : String(error);
  }
}

t.test("options of a log are decoded as kube-apiserver and kubelet do", async (t) => {
  const none = { container: "", follow: false, previous: false, timestamps: false };
  for (const [query, expected] of [
    ["", none],
    ["bogus=1&pretty=true", none],
    ["container=a&container=b", { container: "a" }],
    // Every word but these two is true, an absent value too.
    ["follow&previous=x&timestamps=", { follow: true, previous: true, timestamps: true }],
    ["follow=0&previous=FALSE&timestamps=False", none],
    ["follow=00&previous=no", { follow: true, previous: true }],
    ["tailLines=9223372036854775807", { tailLines: 2n ** 63n - 1n }],
    ["limitBytes=-9223372036854775808", { limitBytes: -(2n ** 63n) }],
    ["sinceSeconds=%2B2&tailLines=007", { sinceSeconds: 2n, tailLines: 7n }],
    ["tailLines=0000000000000000000000000000001", { tailLines: 1n }],
    ["sinceTime=", { sinceTime: { seconds: -62_135_596_800, nanos: 0 } }],
    ["sinceTime=null", { sinceTime: { seconds: -62_135_596_800, nanos: 0 } }],
    ["sinceTime=1970-01-01T02:00:01.5%2B02:00", { sinceTime: { seconds: 1, nanos: 500_000_000 } }],
    ["stream=x", { stream: "x" }],
  ] as const) {
    t.match(decode(query), expected, query);
  }
});

t.test(
  "a value of another type is rejected with Go's error, of several the first by the order of fields",
  async (t) => {
    const integer = (text: string, why: string): string => `strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`;
    const time = (text: string, why: string): string => `parsing time "${text}" as "2006-01-02T15:04:05Z07:00": ${why}`;
    for (const [query, message] of [
      ["tailLines", integer("", "invalid syntax")],
      ["tailLines=x&tailLines=1", integer("x", "invalid syntax")],
      ["limitBytes=+1", integer(" 1", "invalid syntax")],
      ["limitBytes=0x1", integer("0x1", "invalid syntax")],
      ["sinceSeconds=1e3", integer("1e3", "invalid syntax")],
      ["sinceSeconds=9223372036854775808", integer("9223372036854775808", "value out of range")],
      [`tailLines=-${"9".repeat(60)}`, integer(`-${"9".repeat(60)}`, "value out of range")],
      ["sinceTime=x", time("x", 'cannot parse "x" as "2006"')],
      ["sinceTime=2020-01-01", time("2020-01-01", 'cannot parse "" as "T"')],
      ["limitBytes=x&tailLines=y&sinceTime=z", time("z", 'cannot parse "z" as "2006"')],
      ["limitBytes=x&tailLines=y&sinceSeconds=z", integer("z", "invalid syntax")],
      ["limitBytes=x&tailLines=y", integer("y", "invalid syntax")],
    ] as const) {
      t.equal(reject(query), message, query);
    }
  },
);

t.test("options out of range and options that exclude each other are invalid", async (t) => {
  const both = "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
  for (const [query, ...messages] of [
    ["tailLines=0&limitBytes=1&sinceSeconds=1"],
    ["tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"],
    ["limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"],
    ["sinceSeconds=-9223372036854775808", "sinceSeconds: Invalid value: -9223372036854775808: must be greater than 0"],
    // An empty time is a time.
    ["sinceSeconds=0&sinceTime=", both],
    ["stream=All&tailLines=1"],
    ["stream=all", 'stream: Unsupported value: "all": supported values: "Stdout", "Stderr", "All"'],
    ["stream=Stdout&tailLines=1", "[]: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now"],
  ] as const) {
    const errors = validateLogQuery(decode(query)).map((error) => `${error.field}: ${renderFieldError(error)}`);
    t.same(errors, messages, query);
  }
});
