import t from "tap";
import { percentDecode } from "./percent-decode.ts";

t.test("percentDecode() replaces bytes that are not UTF-8 and keeps malformed escapes", async (t) => {
  for (const [text, expected] of [
    ["a+b", "a+b"],
    ["%E4%B8%AD%2f", "中/"],
    ["%ff%20x", "\uFFFD x"],
    ["%zz%41", "%zzA"],
  ] as const)
    t.equal(percentDecode(text), expected);
});
