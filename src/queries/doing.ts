// queries/doing.ts: what an agent did last, in plain words. The words of the agent's are in them as they came: whoever shows them cleans them.
import type { Action } from '../protocol/agent-event.ts';
import type { EventLine } from '../store/events.ts';

/** null: nothing that anybody would call doing something. */
export function doingWords(event: EventLine): string | null {
  switch (event.type) {
    case 'tool.started':
      return short(actionWords(event['action'] as Action | undefined, text(event['tool'])));
    case 'agent.said':
    case 'run.prepared':
      return short(text(event['text']));
    case 'run.waiting':
      return short(`Waits: ${text(event['why'])}`);
    case 'agent.waited':
      return short(`Waits for its model: ${text(event['why'])}`);
    case 'agent.asked':
      return short(`Asks: ${text(event['question'])}`);
    case 'network.asked':
      return short(`Wants to reach ${text(event['host'])}`);
    case 'message.sent':
      return 'Reads your message';
    default:
      return null;
  }
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
