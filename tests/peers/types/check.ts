// Held against the exports by the compiler: what the peers' own types say, as far as they are published (they are not
// yet for TanStack's limits and for Tangle: these declarations are ours).
import { RUN_BUDGET } from "./prism-run-budget";
import { SUBAGENT_LIMITS } from "./subagent-limits";
import { LIMITS } from "./tangle-limits";

interface RunBudget {
  readonly maxSteps: number;
  readonly maxCostUsd?: number | null;
  readonly maxSeconds?: number | null;
}
interface SubagentLimits {
  maxDepth?: number;
  maxConcurrent?: number;
  maxCalls?: number;
  timeoutMs?: number;
}
interface Budget {
  readonly maxIterations: number;
  readonly maxTokens: number;
  readonly maxUsd?: number;
  readonly deadlineMs?: number;
}

export const prism: RunBudget = RUN_BUDGET;
export const tanstack: SubagentLimits = SUBAGENT_LIMITS;
export const tangle: Budget = LIMITS.budget;
export const floors: Record<string, number | null> | undefined = LIMITS.runtimeFloors;
