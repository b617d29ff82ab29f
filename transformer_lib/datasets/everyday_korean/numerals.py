"""Numbers in Korean and English: native and Sino-Korean, the clock, dates, money, ages."""

__all__ = [
    "MONTHS",
    "age_korean",
    "clock_english",
    "clock_korean",
    "english_number",
    "month_day",
    "native",
    "ordinal",
    "sino",
]

_NATIVE_SHORT = ["", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉"]
_NATIVE_TENS = ["", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"]
_SINO_UNITS = ["", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구"]
_SINO_PLACES = ["", "십", "백", "천"]
_ENGLISH = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_ENGLISH_TENS = [
    "",
    "",
    *["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def native(number: int) -> str:
    """The native number before a counter, 1 to 99: 한, 스무, 스물한."""
    if not 1 <= number <= 99:
        raise ValueError(f"number: expected 1 to 99, got {number}")
    if number == 20:
        return "스무"
    return _NATIVE_TENS[number // 10] + _NATIVE_SHORT[number % 10]


def _below_ten_thousand(number: int) -> str:
    text = ""
    for place in range(3, -1, -1):
        digit = number // 10**place % 10
        if digit:
            # 십, not 일십.
            unit = "" if digit == 1 and place else _SINO_UNITS[digit]
            text += unit + _SINO_PLACES[place]
    return text


def sino(number: int) -> str:
    """The Sino-Korean number, spaced at 만: 이십삼, 만 오천, 삼만 이천오백."""
    if not 0 <= number < 10**8:
        raise ValueError(f"number: expected 0 to 99,999,999, got {number}")
    if not number:
        return "영"
    high, low = divmod(number, 10_000)
    parts = []
    if high:
        parts.append(("" if high == 1 else _below_ten_thousand(high)) + "만")
    if low:
        parts.append(_below_ten_thousand(low))
    return " ".join(parts)


def english_number(number: int) -> str:
    """The number in words below a hundred, in digits above: three, twenty-one, 1,500."""
    if number < 20:
        return _ENGLISH[number]
    if number < 100:
        tens, unit = divmod(number, 10)
        return _ENGLISH_TENS[tens] + (f"-{_ENGLISH[unit]}" if unit else "")
    return f"{number:,}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th, 21st."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def clock_korean(hour: int, minute: int, digits: bool = False) -> str:
    """세 시, 세 시 반, 세 시 십 분; with digits 3시, 3시 반, 3시 10분."""
    hours = f"{hour}시" if digits else f"{native(hour)} 시"
    if not minute:
        return hours
    if minute == 30:
        return f"{hours} 반"
    return f"{hours} {minute}분" if digits else f"{hours} {sino(minute)} 분"


def clock_english(hour: int, minute: int) -> str:
    """Three o'clock, half past three, 3:10."""
    if not minute:
        return f"{english_number(hour)} o'clock"
    return f"half past {english_number(hour)}" if minute == 30 else f"{hour}:{minute:02}"


def month_day(month: int, day: int, digits: bool = False) -> tuple[str, str]:
    """A date: 삼월 오일 or 3월 5일, and March 5th."""
    names = {6: "유", 10: "시"}
    month_name = f"{month}월" if digits else names.get(month, sino(month)) + "월"
    day_name = f"{day}일" if digits else sino(day) + "일"
    return f"{month_name} {day_name}", f"{MONTHS[month - 1]} {ordinal(day)}"


def age_korean(age: int, digits: bool = False) -> str:
    """스무 살, 서른두 살; with digits 20살."""
    return f"{age}살" if digits else f"{native(age)} 살"
