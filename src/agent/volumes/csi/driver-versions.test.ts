import t from "tap";
import { findVersionProblem } from "./driver-versions.ts";

t.test("drivers of CSI 1.x are supported, others are refused with Kubernetes' text", async (t) => {
  for (const versions of [["1.0.0"], ["v1.2"], ["0.3.0", "1.0.0"], ["2.0.0", "1.5.0-rc.1"], ["x", "1.0"], [" v1.0 "]]) {
    t.equal(findVersionProblem("d", versions), undefined, versions.join());
  }
  const failed = `kubernetes.io/csi: ValidatePlugin for CSI driver "d" failed.`;
  t.equal(findVersionProblem("d", []), `${failed} Plugin returned an empty list for supported versions`);
  const rows: readonly (readonly [versions: readonly string[], quoted: string, why: string])[] = [
    [["9.9.9"], '"9.9.9"', "could not find a highest supported version from versions ([9.9.9]) reported: <nil>"],
    [
      ["2.0.0", "1"],
      '"2.0.0" "1"',
      'could not find a highest supported version from versions ([2.0.0 1]) reported: illegal version string "1"',
    ],
    [
      ["one"],
      '"one"',
      'could not find a highest supported version from versions ([one]) reported: could not parse "one" as version',
    ],
    [
      ["01.0"],
      '"01.0"',
      "could not find a highest supported version from versions ([01.0]) reported: illegal zero-prefixed version " +
        'component "01" in "01.0"',
    ],
    [["0.3.0", "0.2.9"], '"0.3.0" "0.2.9"', "highest supported version reported is 0.3.0, must be v1.x"],
  ];
  for (const [versions, quoted, why] of rows) {
    const expected = `${failed} None of the versions specified [${quoted}] are supported. err=${why}`;
    t.equal(findVersionProblem("d", versions), expected);
  }
});
