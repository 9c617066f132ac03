//! The mouse: what a click, a drag and the wheel do, wherever they hit.

use tpu_screen::message::{Act, Effect, Message, Mouse, MouseDid};
use tpu_screen::tabs::Tab;
use tpu_screen::view::layout::Layout;

use crate::common::boards::screen;
use crate::common::samples;
use crate::common::screen::Screen;

fn click(screen: &mut Screen, x: u16, y: u16) -> Vec<Effect> {
    screen.send(Message::Mouse(Mouse { x, y, what: MouseDid::Press }))
}

/// Where a text stands on the screen.
fn place(screen: &mut Screen, size: (u16, u16), text: &str) -> (u16, u16) {
    let buffer = screen.buffer(size);
    for y in 0..size.1 {
        for x in 0..size.0 {
            let rest = (x..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>();
            if rest.starts_with(text) {
                return (x, y);
            }
        }
    }
    panic!("{text:?} is not on the screen:\n{}", screen.frame(size));
}

#[test]
fn the_mouse_selects_opens_sorts_and_goes_to_tabs() {
    let size = (120, 40);
    let mut screen = screen();
    let (x, y) = place(&mut screen, size, "sweep");
    click(&mut screen, x, y);
    assert_eq!(screen.model.list.selected, Some(samples::id(9)));
    click(&mut screen, x, y);
    assert!(screen.model.wide, "a second click opens it");
    screen.press("esc");
    let (x, y) = place(&mut screen, size, "time  ");
    click(&mut screen, x, y);
    assert_eq!(
        screen.model.list.arrangement.sort.map(|(sort, way)| (sort.id, way)),
        Some(("age", false))
    );
    click(&mut screen, x, y);
    assert_eq!(
        screen.model.list.arrangement.sort.map(|(sort, way)| (sort.id, way)),
        Some(("age", true))
    );
    assert_eq!(screen.model.list.selected, Some(samples::id(9)), "the selection stays on its job");
    let (x, y) = place(&mut screen, size, "4 Events");
    click(&mut screen, x, y);
    assert_eq!(screen.model.tab, Tab::Events);
    let (x, y) = place(&mut screen, size, "1 Jobs");
    click(&mut screen, x, y);
    assert_eq!(screen.model.tab, Tab::Jobs);
    let (x, y) = place(&mut screen, size, "x kill");
    click(&mut screen, x, y);
    let (x, y) = place(&mut screen, size, "No (n)");
    click(&mut screen, x, y);
    assert!(screen.model.overlay.is_none());
    screen.model.list.selected = Some(samples::id(7));
    screen.press("x");
    let (x, y) = place(&mut screen, size, "Stop (y)");
    let effects = click(&mut screen, x, y);
    let [Effect::Act(begun)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(begun[0].1, Act::Kill(vec![samples::id(7)]));
}

#[test]
fn the_border_can_be_moved_and_the_wheel_moves_on() {
    for size in [(120, 40), (80, 24)] {
        let mut screen = screen();
        screen.buffer(size);
        let layout = Layout::of(&screen.model);
        let (list, detail) = (layout.list.unwrap(), layout.detail.unwrap());
        let from = if layout.beside { (detail.x, 10) } else { (10, detail.y) };
        click(&mut screen, from.0, from.1);
        let to = if layout.beside { (from.0 - 20, 10) } else { (10, from.1 + 4) };
        screen.send(Message::Mouse(Mouse { x: to.0, y: to.1, what: MouseDid::Drag }));
        screen.send(Message::Mouse(Mouse { x: to.0, y: to.1, what: MouseDid::Release }));
        screen.send(Message::Mouse(Mouse { x: 0, y: 0, what: MouseDid::Drag }));
        let moved = Layout::of(&screen.model).list.unwrap();
        let by = (
            i32::from(moved.width) - i32::from(list.width),
            i32::from(moved.height) - i32::from(list.height),
        );
        assert!(by.0 < -15 || by.1 > 2, "{size:?}: {by:?}");
        let before = screen.model.selected_row();
        screen.send(Message::Mouse(Mouse { x: 5, y: 5, what: MouseDid::Wheel(1) }));
        assert_eq!(screen.model.selected_row(), before.map(|row| row + 3));
    }
}

#[test]
fn the_mouse_can_be_released() {
    let mut screen = screen();
    assert_eq!(screen.press("m"), [Effect::Mouse(false)]);
    assert!(screen.frame((120, 40)).contains("mouse free"));
    assert_eq!(screen.press("m"), [Effect::Mouse(true)]);
}
