import t from "tap";
import { INVALID_SINCE_LABEL, LAST_USED_LABEL } from "../../auth/service-account/legacy-tokens.ts";
import { cleanupAction } from "./legacy-token-cleaner.ts";

const NOW = Date.UTC(2026, 5, 15, 12);
const OLD = "2024-01-01T00:00:00Z";

const YEAR_MS = 365 * 24 * 3_600_000;

t.test("cleanupAction() marks tokens unused for a year, and deletes those marked a year ago", (t) => {
  const cases: readonly (readonly [created: string, used: string | undefined, invalid: string | undefined, string])[] =
    [
      [OLD, undefined, undefined, "mark"],
      ["2025-06-15T11:59:59Z", undefined, undefined, "mark"],
      ["2025-06-15T12:00:00Z", undefined, undefined, "keep"],
      [OLD, "2025-06-14", undefined, "mark"],
      [OLD, "2025-06-15", undefined, "keep"],
      [OLD, "2026-06-14", "2024-01-01", "keep"],
      [OLD, "lately", undefined, "keep"],
      [OLD, "2025-02-30", undefined, "keep"],
      [OLD, undefined, "lately", "mark"],
      [OLD, undefined, "2025-06-15", "keep"],
      [OLD, undefined, "2025-06-14", "delete"],
      [OLD, "2025-06-14", "2025-06-14", "delete"],
    ];
  for (const [creationTimestamp, used, invalid, fate] of cases) {
    const labels = {
      ...(used === undefined ? {} : { [LAST_USED_LABEL]: used }),
      ...(invalid === undefined ? {} : { [INVALID_SINCE_LABEL]: invalid }),
    };
    t.equal(
      cleanupAction({ metadata: { creationTimestamp, labels } }, NOW, YEAR_MS),
      fate,
      `${creationTimestamp} ${used} ${invalid}`,
    );
  }
  t.equal(
    cleanupAction({ metadata: { creationTimestamp: OLD, deletionTimestamp: OLD } }, NOW, YEAR_MS),
    "keep",
    "being deleted",
  );
  t.end();
});
