// queries/doing.ts: describes an agent's last action in one line. The line contains unsanitized text from the agent: callers clean it.
import type { Action } from '../protocol/agent-event.ts';
import type { EventLine } from '../protocol/event.ts';

/** null: the event is not an action. */
export function doingWords(event: EventLine): string | null {
  switch (event.type) {
    case 'tool.started':
      return short(actionWords(event.action, text(event.tool)));
    case 'agent.said':
    case 'run.prepared':
      return short(text(event.text));
    case 'run.waiting':
      return short(`Waits: ${text(event.why)}`);
    case 'agent.waited':
      return short(`Waits for its model: ${text(event.why)}`);
    case 'model.failed':
      return short(text(event.why));
    case 'agent.asked':
      return short(`Asks: ${text(event.question)}`);
    case 'network.asked':
      return short(`Wants to reach ${text(event.host)}`);
    case 'message.sent':
      return 'Reads your message';
    case 'run.queued':
    case 'run.moved':
    case 'run.printed':
    case 'run.noticed':
    case 'run.started':
    case 'run.ended':
    case 'run.imported':
    case 'turn.ended':
    case 'agent.started':
    case 'agent.thought':
    case 'agent.used':
    case 'model.answered':
    case 'agent.finished':
    case 'agent.printed':
    case 'tool.finished':
    case 'hook.decided':
    case 'network.denied':
    case 'network.limit-reached':
    case 'service.seeding':
    case 'service.healthy':
    case 'service.failed':
    case 'changes.captured':
    case 'merge.done':
    case 'merge.undone':
    case 'review.taken':
    case 'review.dropped':
    case 'events.lost':
      return null;
  }
  // An event that a newer ags wrote. Here a new event of ours is a compile error.
  event satisfies never;
  return null;
}

function actionWords(action: Action | undefined, tool: string): string {
  switch (action?.kind) {
    case 'command':
      return `Running ${action.command}`;
    case 'write':
      return `${action.change === 'delete' ? 'Deleting' : action.change === 'edit' ? 'Editing' : 'Writing'} ${action.path}`;
    case 'read':
      return `Reading ${action.path}`;
    case 'search':
      return `Searching ${action.what}`;
    case 'fetch':
      return `Fetching ${action.url}`;
    case 'other':
    case undefined:
      return `Using ${tool}`;
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function short(words: string): string {
  const [line = ''] = words.split('\n', 1);
  return line.length <= MAX ? line : `${line.slice(0, MAX)}…`;
}

const MAX = 200;
