// One view that cannot be drawn leaves the frame around it standing, and says what to do.
import { Component, type ComponentChildren } from "preact";

export class Boundary extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render(): ComponentChildren {
    return this.state.failed ? (
      <>
        <h1>This view could not be drawn</h1>
        <p role="alert" class="refusal">
          What the server answered is of a form that this page does not know.
        </p>
        <button type="button" onClick={() => location.reload()}>
          Load it again
        </button>
      </>
    ) : (
      this.props.children
    );
  }
}
