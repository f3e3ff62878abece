import t from "tap";
import { validateWindowsOptions } from "./security-context-validation.ts";

t.test("user names of Windows have limits in bytes and Kubernetes' texts", async (t) => {
  const format = "'s Domain doesn't match the NetBios nor the DNS format";
  const long = "'s User length must not be longer than 104 characters";
  const letters = "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]";
  const cases: readonly (readonly [name: string, problems: readonly string[]])[] = [
    ["ContainerUser", []],
    ["NT AUTHORITY\\SYSTEM", []],
    ["\u00e9".repeat(52), []],
    ["\u00e9".repeat(53), [long]],
    [`${"a".repeat(104)}@`, [long, letters]],
    ["..", ["'s User cannot contain only periods or spaces"]],
    ["", [" cannot be an empty string"]],
    ["a\tb", [" cannot contain control characters"]],
    ["a\\b\\c", [" cannot contain more than one backslash"]],
    ["D\\", ["'s User cannot be empty"]],
    [".D\\u", [format]],
    [`${"a".repeat(63)}.b\\u`, []],
    [`${"a".repeat(64)}.b\\u`, [format]],
    ["aaaaaaaaaaaaaaa..b\\u", [format]],
    [`${"a.".repeat(127)}bc\\u`, ["'s Domain length must be under 256 characters"]],
  ];
  for (const [runAsUserName, problems] of cases) {
    t.same(
      validateWindowsOptions({ runAsUserName }, "w").map(({ field, detail }) => `${field}: ${detail}`),
      problems.map((problem) => `w.runAsUserName: runAsUserName${problem}`),
      JSON.stringify(runAsUserName),
    );
  }
});
