// agent-run/prompts.ts: what an agent is told at the beginning of a turn.
import { oneLine } from '../git/commit-text.ts';
import { GO_ON, type TakenMessage } from './inbox.ts';

/** For the agent; `ofUser`: what the user said, if that is not all of it. */
export type Message = TakenMessage & { readonly ofUser?: string };

/** The conversation stayed on the other machine, so the prompt tells the agent the original goal. */
export function importedPrompt(goal: string, message: string): string {
  const was = oneLine(goal, 4000).replaceAll(' // ', ' / ');
  return `(You take up work that was begun elsewhere. It is in the commits of this branch. Its goal was "${was}".)\n\n${message}`;
}

export const goalPrompt = (goal: string, message: string): string => `${goal}\n\n${message}`;

export function goOn(goal: string, told: TakenMessage | null, knows: boolean): Message {
  const text = told === null ? GO_ON : told.text;
  return { text: knows ? text : goalPrompt(goal, text), ofUser: told?.text ?? '', drop: () => told?.drop() };
}
